// Package yamlfile reads a YAML file of settings and knows the lines of its keys.
//
// The parser of YAML reports the line at which the enclosing list or map begins, not
// that of the mistake. Parse searches the line itself: it is the one behind the
// longest beginning of the file that can be parsed. Line finds the line of a setting,
// so that an error about a value names both.
//
// Section reads one top-level section of a file whose other parts cannot be parsed.
// Commands that only need the address of the server use it while the file is broken.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is a parsed file. It is immutable.
type File struct {
	values map[string]any
	root   *yaml.Node
}

// SyntaxError reports text that is not YAML, or not a map of settings.
type SyntaxError struct {
	Line    int // 1 is the first line; 0 is unknown
	Problem string
}

// Error returns the line and the problem. It contains no text of the file.
func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return e.Problem
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Problem)
}

// Parse reads a file. The error is a *SyntaxError.
func Parse(source []byte) (*File, error) {
	f := &File{root: &yaml.Node{}}
	if err := parse(source, f.root, &f.values); err != nil {
		return nil, syntaxError(source, err)
	}
	return f, nil
}

func parse(source []byte, root *yaml.Node, values *map[string]any) error {
	if err := yaml.Unmarshal(source, root); err != nil {
		return err
	}
	if root.Kind == 0 { // an empty file
		return nil
	}
	if err := root.Decode(values); err != nil {
		return err
	}
	*values, _ = textKeys(*values).(map[string]any)
	return nil
}

// textKeys returns node with the keys of all maps as text: 7: x has the key "7".
func textKeys(node any) any {
	switch n := node.(type) {
	case map[string]any:
		for key, value := range n {
			n[key] = textKeys(value)
		}
	case map[any]any:
		out := make(map[string]any, len(n))
		for key, value := range n {
			out[fmt.Sprint(key)] = textKeys(value)
		}
		return out
	case []any:
		for i := range n {
			n[i] = textKeys(n[i])
		}
	}
	return node
}

// Values returns the content: maps with text keys, lists and single values.
func (f *File) Values() map[string]any { return f.values }

// Section returns the file reduced to its top-level section of that name, read
// without the rest of source, and false if there is none. The error is a *SyntaxError
// of the section.
func Section(source []byte, name string) (f *File, ok bool, err error) {
	lines := bytes.SplitAfter(source, []byte("\n"))
	for i, line := range lines {
		if sectionName(line) != name {
			continue
		}
		end := i + 1
		for end < len(lines) && sectionName(lines[end]) == "" {
			end++
		}
		// The lines before keep the numbers of the lines.
		f, err := Parse(append(bytes.Repeat([]byte("\n"), i), bytes.Join(lines[i:end], nil)...))
		return f, true, err
	}
	return nil, false, nil
}

var sectionStart = regexp.MustCompile(`^["']?([A-Za-z_][A-Za-z0-9_]*)["']?\s*:(\s|$)`)

// sectionName returns the top-level key that a line begins, or "".
func sectionName(line []byte) string {
	if m := sectionStart.FindSubmatch(line); m != nil {
		return string(m[1])
	}
	return ""
}

var parserPrefix = regexp.MustCompile(`^yaml: (unmarshal errors:\n\s*)?(line \d+: )?`)

// syntaxError returns the error of the parser with the line of the mistake.
func syntaxError(source []byte, err error) *SyntaxError {
	problem, _, _ := strings.Cut(parserPrefix.ReplaceAllString(err.Error(), ""), "\n")
	var types *yaml.TypeError
	if errors.As(err, &types) {
		if strings.Contains(problem, "cannot unmarshal") { // quotes a value
			return &SyntaxError{Problem: "the file must hold settings such as data_dir: ./data"}
		}
		at, _ := strconv.Atoi(firstNumber(types.Errors[0]))
		return &SyntaxError{at, problem}
	}
	return &SyntaxError{badLine(source), problem}
}

var number = regexp.MustCompile(`\d+`)

func firstNumber(s string) string { return number.FindString(s) }

// badLine returns the number of the first line behind the longest beginning of source
// that is YAML. It skips whole sections first, because it parses once for each line.
func badLine(source []byte) int {
	lines := bytes.SplitAfter(source, []byte("\n"))
	begin, end := 0, len(lines)
	for i := 1; i < len(lines); i++ {
		if sectionName(lines[i]) == "" {
			continue
		}
		if !isYAML(lines[:i]) {
			end = i
			break
		}
		begin = i
	}
	good := lastGood(lines, begin, end)
	for good < len(lines)-1 && isBlank(lines[good]) {
		good++
	}
	return good + 1
}

// spanLines is how many lines a value that is YAML only as a whole may have, such as a
// list in brackets, for lastGood to search behind it.
const spanLines = 16

// lastGood returns the largest number of first lines that are YAML, from good, which is
// known, to bad. It halves long ranges, because it parses once for each number.
func lastGood(lines [][]byte, good, bad int) int {
	for bad-good > 2*spanLines {
		middle := (good + bad) / 2
		if n := firstGood(lines, middle, middle+spanLines); n > 0 {
			good = n
		} else {
			bad = middle
		}
	}
	for n := bad; n > good; n-- {
		if isYAML(lines[:n]) {
			return n
		}
	}
	return good
}

// firstGood returns the smallest number of first lines from begin to end that are YAML, 0
// for none.
func firstGood(lines [][]byte, begin, end int) int {
	for n := begin; n <= end; n++ {
		if isYAML(lines[:n]) {
			return n
		}
	}
	return 0
}

func isYAML(lines [][]byte) bool { return Valid(bytes.Join(lines, nil)) }

// Valid reports whether Parse reads source without an error. It does not search the line
// of a mistake and is faster for text that is not YAML.
func Valid(source []byte) bool {
	var values map[string]any
	return parse(source, &yaml.Node{}, &values) == nil
}

func isBlank(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#'
}

// Line returns the line of the setting key, such as plugins.instances[0].name, and 0
// if the file does not set it.
func (f *File) Line(key string) int {
	node := f.root
	if node.Kind == yaml.DocumentNode && len(node.Content) == 1 {
		node = node.Content[0]
	}
	line := 0
	for _, step := range steps.FindAllString(key, -1) {
		if node, line = child(node, strings.Trim(step, "[]")); node == nil {
			return 0
		}
	}
	return line
}

var steps = regexp.MustCompile(`\[\d+\]|[^.\[\]]+`)

// child returns the value of a key or an index, and the line where it begins.
func child(node *yaml.Node, step string) (*yaml.Node, int) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(node.Content) {
			return node.Content[i], node.Content[i].Line
		}
	default:
	}
	return nil, 0
}
