package rules

import (
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/document"
)

// ReadGroups reads the groups of a request: a JSON object of group types and keys;
// nil for an empty text. It fails with Invalid for the field groups.
func ReadGroups(raw string) (map[string]string, error) {
	if raw == "" {
		return nil, nil
	}
	given, err := document.Parse([]byte(raw))
	if err != nil {
		return nil, fault.Field("groups", CodeInvalid, "groups must be a JSON object of group types and keys.")
	}
	groups := map[string]string{}
	for _, name := range given.Names {
		key, _ := given.Get(name)
		if s, isText := document.Text(key); isText {
			groups[name] = s
		} else if document.KindOf(key) == "number" {
			groups[name] = string(key)
		}
	}
	return groups, nil
}
