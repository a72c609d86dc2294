package yamlfile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// settingInError finds the key at the begin of an error, and the key within a list
// item that follows the item: plugins.instances[0] (name): delivery.sample.
var settingInError = regexp.MustCompile(`^(?:unknown key )?"?([a-z][a-z0-9_]*(?:\.[A-Za-z0-9_]+|\[\d+\])*)"?:?(?: \([^)]*\): ([a-z_0-9.\[\]]+))?`)

// Locate adds to each line of err where in the file the setting is that it names.
// Settings in overridden, which come from elsewhere, have no line.
func (f *File) Locate(err error, overridden map[string]any) error {
	lines := strings.Split(err.Error(), "\n")
	for i, text := range lines {
		m := settingInError.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if _, skip := overridden[m[1]]; skip {
			continue
		}
		at := f.Line(m[1])
		if inner := f.Line(m[1] + "." + strings.TrimSuffix(m[2], ":")); m[2] != "" && inner > 0 {
			at = inner
		}
		if at > 0 {
			lines[i] = fmt.Sprintf("line %d: %s", at, text)
		}
	}
	return errors.New(strings.Join(lines, "\n"))
}
