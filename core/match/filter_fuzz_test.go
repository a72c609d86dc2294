package match_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/guidonhq/guidon/core/match"
)

// FuzzFilter compiles any value for any operator and matches any property. It
// checks that nothing panics, that a result is true or false, and that an
// operator and its negation never both pass.
func FuzzFilter(f *testing.F) {
	operators := match.Operators()
	slices.Sort(operators)
	for i := range operators {
		f.Add(uint(i), `"1.2.3"`, `"1.2.4-x"`)
		f.Add(uint(i), `["a",1,null,{"b":[]}]`, `{"a":1e300}`)
		f.Add(uint(i), `"-12m"`, `"2024-02-30T25:61:61+99:99"`)
		f.Add(uint(i), `"İΣ"`, `"i̇ς"`)
	}
	negated := map[string]string{}
	for _, name := range operators {
		if _, ok := match.Canonical("not_" + name); ok {
			negated[name] = "not_" + name
		}
	}
	negated["exact"], negated["is_set"], negated["semver_eq"] = "is_not", "is_not_set", "semver_neq"
	f.Fuzz(func(t *testing.T, at uint, filter, property string) {
		if !json.Valid([]byte(filter)) || !json.Valid([]byte(property)) {
			return
		}
		name := operators[at%uint(len(operators))]
		got := ask(t, name, filter, property)
		if got == match.Unknown {
			t.Errorf("%s %s on %s is unknown", name, filter, property)
		}
		if other := negated[name]; other != "" && got == match.True && ask(t, other, filter, property) == match.True {
			t.Errorf("%s and %s %s both pass %s", name, other, filter, property)
		}
		raw, _ := json.Marshal(map[string]any{"key": "p", "operator": name, "value": json.RawMessage(filter)})
		_, _ = match.CompileFilter(raw, match.Options{})
	})
}
