package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// wantMutants are the mutants of testdata/sample with what its tests say of them.
const wantMutants = `
killed 15 var: initial() + 1 -> -
killed 17 initial: return 9 -> 0
killed 29 Discount: return total, nil -> 0, nil
killed 21 Discount: total < 0 -> !(total < 0)
survived 21 Discount: total < 0 -> <=
killed 22 Discount: return 0, errors.New("negative") -> 0, nil
killed 24 Discount: member && total > 100 -> false
killed 25 Discount: total > 1000 -> false
killed 24 Discount: member -> true
killed 24 Discount: total > 100 -> true
survived 24 Discount: total > 100 -> >=
survived 25 Discount: total > 1000 -> >=
killed 26 Discount: drop total -= total / 10
killed 26 Discount: total / 10 -> *
killed 38 Count: return n -> 0
killed 35 Count: n < to -> !(n < to)
killed 35 Count: n < to -> <=
timeout 36 Count: drop n++
unreached 43 Untested: d > time.Hour -> !(d > time.Hour)
unreached 44 Untested: return fmt.Sprint(-d % time.Hour) -> ""
unreached 43 Untested: d > time.Hour -> >=
unreached 44 Untested: -d % time.Hour -> *
unreached 44 Untested: -d -> d
killed 56 list.has: false -> true
killed 54 list.has: true -> false
killed 51 list.has: !equal(item) -> equal(item)
killed 52 list.has: drop continue
killed 61 Within: l.has(func(item int) bool { return item == n }) -> !l.has(func(item int) bool { return item == n })
killed 61 Within: item == n -> !(item == n)
`

func TestMutantsOfSample(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, err := mutatePackage("./testdata/sample", dir)
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, m := range target.mutants {
		got = append(got, fmt.Sprintf("%d %s", m.line, m.key()))
	}
	var want []string
	for line := range strings.Lines(strings.TrimPrefix(wantMutants, "\n")) {
		_, mutant, _ := strings.Cut(strings.TrimSpace(line), " ")
		want = append(want, mutant)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	// The copy parses and has the lines of the original.
	original, err := os.ReadFile("testdata/sample/sample.go")
	if err != nil {
		t.Fatal(err)
	}
	mutated, err := os.ReadFile(filepath.Join(dir, "sample.go"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.ParseFile(token.NewFileSet(), "sample.go", mutated, 0); err != nil {
		t.Error(err)
	}
	if strings.Count(string(original), "\n") != strings.Count(string(mutated), "\n") {
		t.Error("the copy has other lines")
	}
}

func TestRunOfSample(t *testing.T) {
	if os.Getenv("GUIDON_TEST_LONG") == "" {
		t.Skip("long test: run it with GUIDON_TEST_LONG=1 or make test-long")
	}
	t.Parallel()
	var out strings.Builder
	o := options{runner: runner{ctx: t.Context(), jobs: 2, factor: 3, slack: 3 * time.Second, memory: 8 << 20, short: true}}
	s, err := measure(&out, o, "./testdata/sample")
	if err != nil {
		t.Fatal(err)
	}

	words := map[int]string{}
	for _, o := range s.outcomes {
		words[o.mutant.id] = o.word()
	}
	var got []string
	target, err := mutatePackage("./testdata/sample", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range target.mutants {
		word := words[m.id]
		if word == "" {
			word = "unreached"
		}
		got = append(got, fmt.Sprintf("%s %d %s\n", word, m.line, m.key()))
	}
	if got := strings.Join(got, ""); got != strings.TrimPrefix(wantMutants, "\n") {
		t.Errorf("got\n%s\nwant%s\n%s", got, wantMutants, out.String())
	}
	if !strings.Contains(out.String(), "left out, since they fail without a mutant: TestFails\n") {
		t.Errorf("the failing test is not named:\n%s", out.String())
	}
}

func TestSampleIsRepeatable(t *testing.T) {
	t.Parallel()
	var all []*mutant
	for i := range 100 {
		all = append(all, &mutant{id: i, file: "a.go", line: i, fn: "f", change: fmt.Sprint("drop ", i)})
	}
	choose := func(o options, from []*mutant) []string {
		chosen, err := o.choose(from)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, m := range chosen {
			keys = append(keys, m.key())
		}
		slices.Sort(keys)
		return keys
	}

	o := options{sample: 10, seed: 1}
	first := choose(o, all)
	if len(first) != 10 || !slices.Equal(first, choose(o, all)) {
		t.Errorf("the sample changes: %v", first)
	}
	if slices.Equal(first, choose(options{sample: 10, seed: 2}, all)) {
		t.Error("another seed chooses the same")
	}

	// A mutant less changes at most its own place in the sample.
	kept := 0
	for _, key := range choose(o, all[1:]) {
		if slices.Contains(first, key) {
			kept++
		}
	}
	if kept < 9 {
		t.Errorf("only %d of 10 stay in the sample", kept)
	}

	if got := choose(options{only: `^a\.go:1\d `, exclude: "drop 1[0-7]"}, all); !slices.Equal(got, []string{"f: drop 18", "f: drop 19"}) {
		t.Errorf("got %v", got)
	}
}

func TestEquivalents(t *testing.T) {
	t.Parallel()
	const text = "# comment\n\ncore/a f: x > 0 -> >=\n\tx is never 0\ncore/a f: gone -> false\n\treason\ncore/b f: y -> !y\n\treason\n"
	keys, err := parseEquivalents(text, "example.com/m/core/a")
	if err != nil {
		t.Fatal(err)
	}
	mutants := []*mutant{{fn: "f", change: "x > 0 -> >=", nth: 1}, {fn: "f", change: "x > 0 -> >=", nth: 2}, {fn: "f", change: "y -> !y", nth: 1}}
	rest, stale := withoutEquivalents(mutants, keys)
	if len(rest) != 2 || rest[0] != mutants[1] || !slices.Equal(stale, []string{"f: gone -> false"}) {
		t.Errorf("got %v, %v", rest, stale)
	}

	if _, err := parseEquivalents("core/a f: x -> !x\ncore/a f: y -> !y\n\treason\n", "m/core/a"); err == nil {
		t.Error("a mutant without a reason is accepted")
	}
	if _, err := parseEquivalents(recorded, "m/core/a"); err != nil {
		t.Error(err)
	}
}
