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
