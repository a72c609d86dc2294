package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// DecodeConfig fills the struct that config points to from JSON exactly as Serve
// does it for a server, for tests of a plugin. It is strict: an unknown key, a
// value of another type, one out of bounds and a missing required field are
// errors, joined, each a ConfigError with the pointer of its place. Fields that
// the text does not name keep their value.
func DecodeConfig(text []byte, config any) error {
	var problems []error
	for _, d := range decodeConfig(&pluginv1.Config{ConfigJson: text}, config) {
		message := d.GetSummary()
		if d.GetDetail() != "" {
			message += " (" + d.GetDetail() + ")"
		}
		problems = append(problems, &Error{
			Class: ClassConfig, Code: "config", Pointer: d.GetPointer(), Source: SourcePlugin, Message: d.GetPointer() + ": " + message,
		})
	}
	return errors.Join(problems...)
}

// secretText is a string that came from a reference. It may fill a field of
// any scalar type, and it is never quoted in a diagnostic.
type secretText string

// configTree parses the config and puts the secrets into their places.
func configTree(config *pluginv1.Config) (map[string]any, error) {
	tree := map[string]any{}
	if text := bytes.TrimSpace(config.GetConfigJson()); len(text) > 0 && string(text) != "null" {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		if err := dec.Decode(&tree); err != nil {
			return nil, err
		}
		if _, err := dec.Token(); err != io.EOF {
			return nil, fmt.Errorf("more than one value")
		}
	}
	for pointer, value := range config.GetSecrets() {
		if err := setAt(tree, pointer, secretText(value)); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// setAt replaces the value that pointer names; the value must be there.
func setAt(tree map[string]any, pointer string, value any) error {
	var node any = tree
	parts := strings.Split(pointer, "/")
	for i, part := range parts[1:] {
		key := strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		last := i == len(parts)-2
		switch n := node.(type) {
		case map[string]any:
			if last {
				n[key] = value
			}
			node = n[key]
		case []any:
			at, err := strconv.Atoi(key)
			if err != nil || at < 0 || at >= len(n) {
				return fmt.Errorf("no such place: %s", pointer)
			}
			if last {
				n[at] = value
			}
			node = n[at]
		default:
			return fmt.Errorf("no such place: %s", pointer)
		}
	}
	return nil
}
