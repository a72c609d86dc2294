package apikey

import (
	"strings"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/fault"
)

// MaxName is the maximum length of names and labels in characters.
const MaxName = 200

// CheckName returns a name or label without surrounding space, or Invalid for the
// field attr.
func CheckName(attr, name string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return "", fault.Field(attr, "blank", "This field may not be blank.")
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		return "", fault.Field(attr, "invalid_input", "This field must be text.")
	case utf8.RuneCountInString(name) > MaxName:
		return "", fault.Fieldf(attr, "max_length", "Ensure this field has no more than %d characters.", MaxName)
	}
	return name, nil
}
