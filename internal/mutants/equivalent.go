package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// recorded lists mutants that no test can notice, since the package behaves the same with them:
//
//	core/match parseNumber: i > 0 -> >=
//		why it is equivalent
//
//go:embed equivalent.txt
var recorded string

// parseEquivalents returns the keys of the package's equivalent mutants.
func parseEquivalents(text, path string) (map[string]bool, error) {
	keys := map[string]bool{}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "\t") {
			continue
		}
		if i+1 == len(lines) || !strings.HasPrefix(lines[i+1], "\t") {
			return nil, fmt.Errorf("equivalent.txt:%d: a mutant needs a reason on the next line", i+1)
		}
		folder, key, ok := strings.Cut(line, " ")
		if !ok {
			return nil, fmt.Errorf("equivalent.txt:%d: want a package and a mutant", i+1)
		}
		if strings.HasSuffix(path, "/"+folder) {
			keys[key] = true
		}
	}
	return keys, nil
}

// withoutEquivalents removes the recorded mutants. Keys that no mutant has are stale.
func withoutEquivalents(mutants []*mutant, keys map[string]bool) (rest []*mutant, stale []string) {
	found := map[string]bool{}
	for _, m := range mutants {
		if keys[m.key()] {
			found[m.key()] = true
		} else {
			rest = append(rest, m)
		}
	}
	for key := range keys {
		if !found[key] {
			stale = append(stale, key)
		}
	}
	slices.Sort(stale)
	return rest, stale
}
