package properties

import (
	"strings"

	"github.com/guidonhq/guidon/core/text"
)

// nameProperties are the properties that name a person or group. The first one
// with a value is the display name.
var nameProperties = []string{"email", "Email", "name", "Name", "username", "Username", "UserName"}

// maxSearchText is how many bytes of names are searched.
const maxSearchText = 400

// SearchText returns the text by which a person or group is found: its names
// in lower case, one a line; "" without names.
func (o *Object) SearchText() string {
	var names []string
	for _, key := range nameProperties {
		if val := o.Get(key); Truthy(val) {
			names = append(names, strings.ToLower(Text(val)))
		}
	}
	return text.Truncate(strings.Join(names, "\n"), maxSearchText)
}

// EmailPrefix returns the text with which the search text of each object begins whose
// property email is this address in any case, because it is the first of the names. It ends
// before the first character beyond ASCII, whose lower case is not the same everywhere. whole
// reports whether it is the whole first name.
func EmailPrefix(email string) (prefix string, whole bool) {
	lower := text.Truncate(strings.ToLower(email), maxSearchText)
	if i := strings.IndexFunc(lower, func(r rune) bool { return r >= 0x80 }); i >= 0 {
		return lower[:i], false
	}
	return lower, len(lower) < maxSearchText && strings.Contains(lower, "@") && !strings.ContainsAny(lower, "\"[{")
}

// DisplayName returns the first name, "" without one.
func (o *Object) DisplayName() string {
	for _, key := range nameProperties {
		if val := o.Get(key); Truthy(val) {
			if name := strings.TrimSpace(Text(val)); name != "" {
				return name
			}
		}
	}
	return ""
}
