package pools

import (
	"regexp"
	"strings"
)

// option is a setting in the parameter options of a connection to PostgreSQL: the name in
// -c name=value or --name=value.
var option = regexp.MustCompile(`(?:^|\s)(?:-c\s*|--)([A-Za-z0-9_-]+)\s*=`)

// SetDefault sets a parameter of connections to PostgreSQL, unless params or its options
// have it. Of both PostgreSQL would take the parameter.
func SetDefault(params map[string]string, name, value string) {
	if params[name] != "" {
		return
	}
	for _, m := range option.FindAllStringSubmatch(params["options"], -1) {
		if strings.EqualFold(strings.ReplaceAll(m[1], "-", "_"), name) {
			return
		}
	}
	params[name] = value
}
