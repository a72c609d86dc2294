package match_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/fault"
)

func TestDefinitionLimits(t *testing.T) {
	t.Parallel()
	filters := func(n int, value string) []actionmatch.Step {
		var steps []actionmatch.Step
		for i := range n {
			if i%100 == 0 {
				steps = append(steps, actionmatch.Step{Event: "paid"})
			}
			s := &steps[len(steps)-1]
			s.Properties = append(s.Properties, json.RawMessage(fmt.Sprintf(`{"key":"k","operator":"regex","value":"%s%d"}`, value, i)))
		}
		return steps
	}
	for name, c := range map[string]struct {
		steps []actionmatch.Step
		fits  bool
	}{
		"a thousand filters":            {filters(1000, "x"), true},
		"more":                          {filters(1001, "x"), false},
		"a few that repeat much":        {filters(40, "x{1000}"), true},
		"many that do":                  {filters(80, "x{1000}"), false},
		"a list of them":                {[]actionmatch.Step{{Properties: []json.RawMessage{json.RawMessage(`{"key":"k","operator":"not_regex","value":[` + strings.Repeat(`"y{1000}",`, 80) + `"z"]}`)}}}, false},
		"addresses":                     {[]actionmatch.Step{{URL: strings.Repeat("a{1000}", 60), URLMatching: "regex"}}, false},
		"a long name":                   {[]actionmatch.Step{{Event: strings.Repeat("y", 600<<10)}}, false},
		"a long text that is not regex": {[]actionmatch.Step{{Event: "e", URL: strings.Repeat("a{1000}", 60)}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := actionmatch.Compile(c.steps, actionmatch.CompileOptions{})
			if fits := err == nil; fits != c.fits {
				t.Fatalf("%v", err)
			}
			if f := fault.From(err); err != nil && (f.Attr != "steps" || f.Code != "max_length") {
				t.Errorf("%s %s: %v", f.Attr, f.Code, err)
			}
		})
	}
}
