package app_test

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
)

// retiredWords must not appear as whole words in comments, identifiers and
// Markdown: the field has a standard word for each of them, or a plain sentence
// does without it. docs/glossary.md names the words in use.
var retiredWords = wordSet(`
	nobody somebody anybody everybody whoever
	parcel parcels voyage voyages voyaging rival rivals kinship
	heed heeds heeded mend mends mended mending tend tends tended tending
	sift sifts sifted sieve forsake forsakes forsaken bury buries buried
	asker askers drawer drawers house rooms teller tellers
	hopeless futile misfit disbelieve crowd crowds crowded gallery census loner shelf
	insist insists culprit culprits
`)

// allowedWords lists legitimate uses: file, then words. "*" allows every word.
var allowedWords = map[string][]string{
	"app/words_test.go":         {"*"},      // names them as examples
	"docs/glossary.md":          {"*"},      // names the retired words beside the new ones
	"docs/plugins/catalogue.md": {"insist"}, // of encryption, in the plain sense
}

func TestWords(t *testing.T) {
	t.Parallel()
	for _, f := range findWords(t) {
		t.Errorf("%s:%d: %q is a retired word: see docs/glossary.md for the word in use, or add the file to allowedWords with a reason", f.file, f.line, f.word)
	}
}

type wordFinding struct {
	file, word string
	line       int
}

// findWords returns the uses of retired words in the Go and Markdown files of
// the repository that allowedWords does not list.
func findWords(t *testing.T) []wordFinding {
	t.Helper()
	var findings []wordFinding
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "data", "node_modules", "testdata"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		extension := filepath.Ext(p)
		if extension != ".go" && extension != ".md" {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		file := strings.TrimPrefix(filepath.ToSlash(p), "../")
		scan := scanGo
		if extension == ".md" {
			scan = scanText
		}
		scan(src, func(word string, line int) {
			if uses := allowedWords[file]; !slices.Contains(uses, word) && !slices.Contains(uses, "*") {
				findings = append(findings, wordFinding{file, word, line})
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.SliceStable(findings, func(i, j int) bool { return findings[i].file < findings[j].file })
	return findings
}

// scanGo calls found for each retired word in the comments and identifiers of a
// Go file. String literals are not searched: they hold test data and answers.
func scanGo(src []byte, found func(word string, line int)) {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return
		}
		if tok == token.COMMENT || tok == token.IDENT {
			first := file.Line(pos)
			scanText([]byte(lit), func(word string, line int) { found(word, first+line-1) })
		}
	}
}

// scanText calls found for each retired word of a text. A word is a run of
// letters, or a part of a run that begins with a capital: rivalCount is "rivalcount",
// "rival" and "count".
func scanText(text []byte, found func(word string, line int)) {
	text = bytes.ReplaceAll(text, []byte("ClickHouse"), []byte("Clickhouse"))
	line := 1
	for i := 0; i < len(text); {
		if !isLetter(text[i]) {
			if text[i] == '\n' {
				line++
			}
			i++
			continue
		}
		end := i
		for end < len(text) && isLetter(text[end]) {
			end++
		}
		eachPart(text[i:end], func(part []byte) {
			if word := retired(part); word != "" {
				found(word, line)
			}
		})
		i = end
	}
}

// eachPart calls fn with a run of letters and, when it has several parts, with
// each part. A part begins at a capital after a small letter (aB) and at the
// last capital of several (ABc).
func eachPart(run []byte, fn func([]byte)) {
	fn(run)
	begin := 0
	for i := 1; i < len(run); i++ {
		if isUpper(run[i]) && (!isUpper(run[i-1]) || i+1 < len(run) && !isUpper(run[i+1])) {
			fn(run[begin:i])
			begin = i
		}
	}
	if begin > 0 {
		fn(run[begin:])
	}
}

// retired returns a word in lower case when it is a retired word, else "".
func retired(word []byte) string {
	var lower [16]byte
	if len(word) > len(lower) {
		return ""
	}
	for i, b := range word {
		lower[i] = b | 0x20
	}
	if !retiredWords[string(lower[:len(word)])] { // does not allocate
		return ""
	}
	return string(lower[:len(word)])
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }
func isUpper(b byte) bool  { return 'A' <= b && b <= 'Z' }

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

func TestScanGoFindsRetiredWords(t *testing.T) {
	t.Parallel()
	src := "package p\n\n// Nobody heeds the\n// warehouse of ClickHouse.\nvar maxRivals, HTTPHouse, mend_all, tender = 1, 2, 3, \"voyage\"\n"
	var got []string
	scanGo([]byte(src), func(word string, line int) { got = append(got, fmt.Sprint(word, " ", line)) })
	want := []string{"nobody 3", "heeds 3", "rivals 5", "house 5", "mend 5"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
