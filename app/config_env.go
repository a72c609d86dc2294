package app

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/core/config/mask"
	"github.com/guidonhq/guidon/core/config/yamlfile"
)

// Setting is a setting with its value as written, before references to secrets are
// resolved.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// From is "default", the variable of the environment, or the file with the line.
	From string `json:"from"`
	// Changed reports whether the value differs from the default.
	Changed bool `json:"changed"`
	// Live reports whether a change takes effect without a restart.
	Live bool `json:"live"`
}

// Settings lists every single-valued setting that Load reads from path and environ,
// ordered by key, and the lists of sections that the file has, such as
// plugins.instances, with their length. Passwords that are written out are masked. It
// fails as Load does.
func Settings(path string, environ []string) ([]Setting, error) {
	if _, err := Load(path, environ); err != nil {
		return nil, err
	}
	defaults, err := yamlfile.Parse([]byte(DefaultYAML))
	if err != nil {
		return nil, err
	}
	var source []byte
	if path != "" {
		if source, err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	file, err := yamlfile.Parse(source)
	if err != nil {
		return nil, err
	}
	fromEnv, err := fromEnviron(environ, Keys())
	if err != nil {
		return nil, err
	}
	var out []Setting
	liveKeys := LiveKeys()
	for _, key := range Keys() {
		before := written(defaults.Values(), key)
		s := Setting{Key: key, Value: before, From: "default"}
		if line := file.Line(key); line > 0 {
			s.Value, s.From = written(file.Values(), key), fmt.Sprintf("%s:%d", path, line)
		}
		if value, ok := fromEnv[key].(string); ok {
			s.Value, s.From = value, envName(key)
		}
		s.Changed, s.Live = s.Value != before, slices.Contains(liveKeys, key)
		s.Value = mask.Value(key, s.Value)
		out = append(out, s)
	}
	if n := len(list(file.Values(), "plugins", "instances")); n > 0 {
		out = append(out, Setting{Key: "plugins.instances", Value: fmt.Sprintf("%d configured", n), From: fmt.Sprintf("%s:%d", path, file.Line("plugins.instances")), Changed: true, Live: true})
	}
	return out, nil
}

// written returns the value of a dotted key as text, "" for none.
func written(values map[string]any, key string) string {
	var node any = values
	for step := range strings.SplitSeq(key, ".") {
		section, ok := node.(map[string]any)
		if !ok {
			return ""
		}
		node = section[step]
	}
	if node == nil {
		return ""
	}
	return fmt.Sprint(node)
}

// list returns the list with the key in a section.
func list(values map[string]any, section, key string) []any {
	inner, _ := values[section].(map[string]any)
	items, _ := inner[key].([]any)
	return items
}
