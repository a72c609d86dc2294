package app_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
)

var codeSpan = regexp.MustCompile("`([^`\n]+)`")

// readDocument returns a file of the repository.
func readDocument(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The tables of states in the guide for operators, and the lists in the API, have every
// state of the code and no other.
func TestDocumentedStatesAreComplete(t *testing.T) {
	t.Parallel()
	var instances []string
	for _, s := range lifecycle.States {
		instances = append(instances, string(s))
	}
	guide, spec := readDocument(t, "docs/operators.md"), readDocument(t, "api/openapi.yaml")
	for what, c := range map[string]struct{ documented, states []string }{
		"the table of instances":    {firstColumn(t, guide, "| state of an instance |"), instances},
		"the table of deliveries":   {firstColumn(t, guide, "| delivery state |"), delivery.States()},
		"the instances of the API":  {listAfter(t, spec, regexp.MustCompile(`(?s)    PluginInstance:.*?\[(discovered.*?)\]`)), instances},
		"the deliveries of the API": {listAfter(t, spec, regexp.MustCompile(`examples: \[(starting, idle.*?)\]`)), delivery.States()},
	} {
		slices.Sort(c.documented)
		slices.Sort(c.states)
		if !slices.Equal(c.documented, c.states) {
			t.Errorf("%s has %s, the code %s", what, c.documented, c.states)
		}
	}
}

// firstColumn returns the names in backticks of the first column of a table.
func firstColumn(t *testing.T, text, head string) (names []string) {
	t.Helper()
	_, table, found := strings.Cut(text, head)
	if !found {
		t.Fatalf("no table begins with %s", head)
	}
	for i, line := range strings.Split(table, "\n") {
		if i < 2 {
			continue
		}
		if !strings.HasPrefix(line, "| `") {
			break
		}
		column, _, _ := strings.Cut(line[1:], "|")
		for _, name := range codeSpan.FindAllStringSubmatch(column, -1) {
			names = append(names, name[1])
		}
	}
	return names
}

// listAfter returns the items of the list that the pattern captures.
func listAfter(t *testing.T, text string, pattern *regexp.Regexp) (names []string) {
	t.Helper()
	list := pattern.FindStringSubmatch(text)
	if list == nil {
		t.Fatalf("nothing matches %s", pattern)
	}
	for name := range strings.SplitSeq(list[1], ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return names
}
