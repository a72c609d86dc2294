package plugins_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/guidonhq/guidon/plugins"
	"github.com/guidonhq/guidon/sdk"
)

// each calls test with every bundled plugin, for each kind it is of, and the
// folder of that.
func each(t *testing.T, test func(t *testing.T, p sdk.Plugin, kind, folder string)) {
	for _, name := range plugins.Names() {
		p, ok := plugins.Find(name)
		if !ok || p.Name != name {
			t.Fatalf("found %v, which calls itself %q", ok, p.Name)
		}
		for kind := range values(p) {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				test(t, p, kind, filepath.Join(kind, name))
			})
		}
	}
}

// values makes one value of each kind the plugin is of.
func values(p sdk.Plugin) map[string]any {
	out := map[string]any{}
	if p.Sink != nil {
		out["sink"] = p.Sink()
	}
	if p.Notifier != nil {
		out["notifier"] = p.Notifier()
	}
	if p.Matcher != nil {
		out["matcher"] = p.Matcher()
	}
	return out
}

// commented is an option that is shown with its default, behind a #.
var commented = regexp.MustCompile(`(?m)^(\s*)# ?([a-z][a-z0-9_]*:( |$))`)

// sample reads a folder's sample with or without the commented lines.
func sample(t *testing.T, folder string, whole bool) (use, kind string, config map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "sample.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if whole {
		text = commented.ReplaceAll(text, []byte("$1$2"))
	}
	var s struct {
		Plugins struct {
			Instances []struct {
				Name, Use, Kind string
				Config          map[string]any
			}
		}
	}
	if err := yaml.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	in := s.Plugins.Instances[0]
	return in.Use, in.Kind, in.Config
}

// A sample names every option, those that are commented out with the default,
// and is itself valid.
func TestSamplesAreTheTruth(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p sdk.Plugin, kind, folder string) {
		use, said, all := sample(t, folder, true)
		if use != p.Name || kind != said {
			t.Errorf("the sample is of a %s %q", said, use)
		}
		_, _, few := sample(t, folder, false)
		got, want := fmt.Sprintf("%+v", decoded(t, p, kind, all)), fmt.Sprintf("%+v", decoded(t, p, kind, few))
		if got != want {
			t.Errorf("the sample says\n%s, the defaults are\n%s", got, want)
		}
		var schema struct{ Properties map[string]any }
		if err := json.Unmarshal(sdk.Schema(configOf(p, kind)), &schema); err != nil {
			t.Fatal(err)
		}
		for name := range schema.Properties {
			if _, there := all[name]; !there {
				t.Errorf("the sample does not name %s", name)
			}
		}
	})
}

// decoded is the plugin's config, decoded strictly from a sample.
func decoded(t *testing.T, p sdk.Plugin, kind string, config map[string]any) any {
	t.Helper()
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	to := configOf(p, kind)
	if err := sdk.DecodeConfig(raw, to); err != nil {
		t.Fatal(err)
	}
	return to
}

func configOf(p sdk.Plugin, kind string) any {
	if c, ok := values(p)[kind].(sdk.Configured); ok {
		return c.Config()
	}
	return &struct{}{}
}

func TestEachPluginHasAPageThatShowsHowItIsUsed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p sdk.Plugin, kind, folder string) {
		text, err := os.ReadFile(filepath.Join(folder, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{fmt.Sprintf("      use: %s\n      kind: %s\n", p.Name, kind), "[sample.yaml](sample.yaml)"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("README.md does not have %q", want)
			}
		}
		if p.Summary == "" {
			t.Error("the plugin has no summary")
		}
	})
}
