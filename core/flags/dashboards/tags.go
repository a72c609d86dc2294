package dashboards

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/web"
)

// maxTag is the length limit of a tag, in characters.
const maxTag = 255

// ReadTags reads the field tags of a flag or dashboard: in lower case, each once.
// It returns nil if the field was not sent or is null.
func ReadTags(body *web.Fields) *[]string {
	o := body.Strings("tags")
	if !o.Set || o.Null {
		return nil
	}
	out := []string{}
	seen := map[string]bool{}
	for i, tag := range o.Value {
		tag = strings.ToLower(tag)
		if utf8.RuneCountInString(tag) > maxTag {
			body.Fail("tags__"+strconv.Itoa(i), "max_length", "Ensure this field has no more than "+strconv.Itoa(maxTag)+" characters.")
		}
		if tag != "" && !seen[tag] {
			seen[tag] = true
			out = append(out, tag)
		}
	}
	return &out
}
