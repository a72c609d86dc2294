package plugins_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/guidonhq/guidon/plugins"
)

func TestEveryBundledPluginIsWhatItsNameSaysAndHasItsFourFiles(t *testing.T) {
	t.Parallel()
	names := plugins.Names()
	if !slices.Contains(names, "file") || !slices.IsSorted(names) {
		t.Fatalf("names %v", names)
	}
	for _, name := range names {
		p, ok := plugins.Find(name)
		if !ok || p.Name != name || p.Version == "" || p.Summary == "" {
			t.Errorf("%s: %+v", name, p)
		}
		for _, want := range []string{name + ".go", name + "_test.go", "sample.yaml", "README.md"} {
			if found, _ := filepath.Glob(filepath.Join("*", name, want)); len(found) != 1 {
				t.Errorf("%s: no %s", name, want)
			}
		}
	}
	if _, ok := plugins.Find("no-such"); ok {
		t.Error("found what is not there")
	}
}
