package pluginconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/host/settings"
)

// leaf is a value of a config that is neither an object nor a list.
type leaf struct {
	at     string // JSON Pointer
	value  any
	secret bool   // by the schema
	format string // of the schema
}

// walk returns a config in which replace has replaced each leaf.
func walk(node any, schema map[string]any, at string, secret bool, replace func(leaf) (any, error)) (any, error) {
	secret = secret || schema["writeOnly"] == true
	switch n := node.(type) {
	case map[string]any:
		out := make(map[string]any, len(n))
		for _, key := range slices.Sorted(maps.Keys(n)) {
			child, err := walk(n[key], under(schema, key), at+"/"+escape(key), secret, replace)
			if err != nil {
				return nil, err
			}
			out[key] = child
		}
		return out, nil
	case []any:
		out := make([]any, len(n))
		items, _ := schema["items"].(map[string]any)
		for i := range n {
			child, err := walk(n[i], items, at+"/"+strconv.Itoa(i), secret, replace)
			if err != nil {
				return nil, err
			}
			out[i] = child
		}
		return out, nil
	}
	format, _ := schema["format"].(string)
	return replace(leaf{at, node, secret, format})
}

// under returns the schema of a key; nil if it has none.
func under(schema map[string]any, key string) map[string]any {
	properties, _ := schema["properties"].(map[string]any)
	if own, ok := properties[key].(map[string]any); ok {
		return own
	}
	others, _ := schema["additionalProperties"].(map[string]any)
	return others
}

func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// attrOf returns the name of a field in an error: config.hosts.0.
func attrOf(pointer string) string {
	path := strings.NewReplacer("/", ".", "~1", "/", "~0", "~").Replace(pointer)
	return "config" + path
}

// decode reads a JSON object and keeps its numbers as they are.
func decode(raw []byte) (map[string]any, error) {
	var out map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("read the config: %w", err)
	}
	return out, nil
}

// userInfo finds a user, a password or a token in a URL, also in one without a scheme and in
// one of a list with commas: nats://user:password@host, user:password@host, token@host:4222.
// An e-mail address has neither a colon before the @ nor a port.
var userInfo = regexp.MustCompile(`://[^/?#\s]*@|(?:^|,)[^\s/@<>",]+:[^\s/@<>",]*@|(?:^|,)[^\s/@<>",]+@[^\s/@,]+:[0-9]+`)

// split takes the secrets out of a config: shown has settings.StoredSecret in their place.
// before are the secrets that are stored. A secret that is StoredSecret keeps its value.
func split(config, schema map[string]any, before map[string]string) (shown map[string]any, secrets map[string]string, err error) {
	secrets = map[string]string{}
	out, err := walk(config, schema, "", false, func(l leaf) (any, error) {
		text, isText := l.value.(string)
		switch {
		case isText && secret.HasReference(text):
			return nil, refuse(l.at, "unsupported_reference", "References to variables and files work in the config file only. Enter the value itself.")
		case isText && !l.secret && userInfo.MatchString(text):
			return nil, refuse(l.at, "secret_in_url", "A URL in this field has no user and password: the field is not secret and shown to other operators. Use the fields for them, or a reference in the config file.")
		case !l.secret || l.value == nil || isText && text == "":
			return l.value, nil
		case isText && text == settings.StoredSecret:
			kept, ok := before[l.at]
			if !ok {
				return nil, refuse(l.at, "required", "No value is stored. Enter it.")
			}
			text = kept
		case !isText:
			text = fmt.Sprint(l.value)
		}
		secrets[l.at] = text
		return settings.StoredSecret, nil
	})
	if err != nil {
		return nil, nil, err
	}
	return out.(map[string]any), secrets, nil
}

// decrypted returns a config with its secrets in their places.
func decrypted(shown map[string]any, secrets map[string]string) map[string]any {
	out, _ := walk(shown, nil, "", false, func(l leaf) (any, error) { // never returns an error
		if value, ok := secrets[l.at]; ok {
			return value, nil
		}
		return l.value, nil
	})
	return out.(map[string]any)
}

// cover returns a config as it may be shown: with settings.StoredSecret for secrets that are
// not one reference and nothing else.
func cover(config, schema map[string]any) map[string]any {
	out, _ := walk(normal(config), schema, "", false, func(l leaf) (any, error) { // never returns an error
		text, isText := l.value.(string)
		if !l.secret || l.value == nil || isText && (text == "" || secret.IsReference(text)) {
			return l.value, nil
		}
		return settings.StoredSecret, nil
	})
	return out.(map[string]any)
}

// normal returns a config of the file with the types of JSON.
func normal(config map[string]any) map[string]any {
	raw, err := json.Marshal(config)
	if err != nil {
		return map[string]any{}
	}
	out, err := decode(raw)
	if err != nil || out == nil {
		return map[string]any{}
	}
	return out
}

// schemaOf returns a JSON Schema as an object; nil for none.
func schemaOf(source []byte) (map[string]any, error) {
	if len(source) == 0 {
		return nil, errors.New("no schema")
	}
	return decode(source)
}
