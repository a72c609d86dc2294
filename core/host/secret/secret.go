// Package secret resolves references to secrets in the configuration of a plugin
// and redacts the resolved values from text.
//
// A reference is written ${env:NAME} or ${file:/path} in any string of the
// configuration; $${ stands for a literal ${. Resolve keeps the references in the
// JSON text that is sent to the plugin and passes the values apart, by JSON
// Pointer, so that the text can be logged and compared. Every resolved value is
// added to a Redactor, through which all text of the plugin passes before it is
// logged or returned.
//
// The package protects against accidental disclosure in logs, errors and answers.
// It does not encrypt, and it does not redact values shorter than four bytes.
package secret

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/host/settings"
)

var reference = regexp.MustCompile(`\$?\$\{([^}]*)\}`)

// Config is the configuration of an instance, ready to be sent.
type Config struct {
	// JSON is the config with references as written.
	JSON []byte
	// Values are the resolved references by JSON Pointer.
	Values map[string][]byte
	// Env is the environment of the process.
	Env []string
	// Redactor removes the resolved values from text.
	Redactor *Redactor
}

// Resolve resolves every reference in the config and the environment of an
// instance. The error names the place and the reference, never a value.
func Resolve(c settings.Instance) (*Config, error) {
	r := &Config{Values: map[string][]byte{}, Redactor: &Redactor{}}
	tree, err := r.resolveNode(c.Secrets, "", normalise(c.Config))
	if err != nil {
		return nil, err
	}
	if r.JSON, err = json.Marshal(tree); err != nil {
		return nil, fmt.Errorf("encode config: %w", err)
	}
	for _, name := range append([]string{"PATH", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}, c.Env.Allow...) {
		if value, ok := os.LookupEnv(name); ok {
			r.Env = append(r.Env, name+"="+value)
		}
	}
	for name, text := range c.Env.Set {
		value, parts, err := expand(os.LookupEnv, text)
		if err != nil {
			return nil, fmt.Errorf("env.set.%s: %w", name, err)
		}
		r.redact(value, parts)
		r.Env = append(r.Env, name+"="+value)
	}
	return r, nil
}

// Digest returns a checksum of the command line, the config and the environment.
// It reveals nothing of a secret.
func (r *Config) Digest(argv []string) string {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q %q %q", argv, r.JSON, slices.Sorted(slices.Values(r.Env)))
	for _, at := range slices.Sorted(maps.Keys(r.Values)) {
		_, _ = fmt.Fprintf(sum, "%q %q", at, r.Values[at])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// resolveNode returns the tree to send and collects the values of references, and of
// stored secrets.
func (r *Config) resolveNode(stored map[string]string, at string, node any) (any, error) {
	switch n := node.(type) {
	case map[string]any:
		out := make(map[string]any, len(n))
		for key, value := range n {
			child, err := r.resolveNode(stored, at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key), value)
			if err != nil {
				return nil, err
			}
			out[key] = child
		}
		return out, nil
	case []any:
		out := make([]any, len(n))
		for i, value := range n {
			child, err := r.resolveNode(stored, at+"/"+strconv.Itoa(i), value)
			if err != nil {
				return nil, err
			}
			out[i] = child
		}
		return out, nil
	case string:
		value, parts, err := expandNode(stored, at, n)
		if err != nil {
			return nil, fmt.Errorf("config%s: %w", at, err)
		}
		if len(parts) == 0 {
			return value, nil
		}
		r.Values[at] = []byte(value)
		r.redact(value, parts)
		return n, nil
	}
	return node, nil
}

// expandNode returns the value of a text of the config with the secrets in it.
func expandNode(stored map[string]string, at, text string) (value string, parts []string, err error) {
	if stored == nil || text != settings.StoredSecret {
		return expand(os.LookupEnv, text)
	}
	value, ok := stored[at]
	if !ok {
		return "", nil, errors.New("the stored secret cannot be decrypted; set it again, or give the server the key that it was encrypted with (flags.encryption_key)")
	}
	return value, []string{value}, nil
}

// redact covers a resolved text and the secrets within it, which a plugin may print alone.
func (r *Config) redact(value string, parts []string) {
	if len(parts) == 0 {
		return
	}
	r.Redactor.Add(value)
	for _, part := range parts {
		r.Redactor.Add(part)
	}
}

// HasReference reports whether text has a reference, or an escaped one.
func HasReference(text string) bool { return reference.MatchString(text) }

// IsReference reports whether text is one reference and nothing else: it holds no secret.
func IsReference(text string) bool {
	return strings.HasPrefix(text, "${") && reference.FindString(text) == text
}

// normalise converts the maps of other decoders to map[string]any.
func normalise(node any) any {
	switch n := node.(type) {
	case map[string]any:
		if n == nil {
			return map[string]any{}
		}
		out := make(map[string]any, len(n))
		for key, value := range n {
			out[key] = normalise(value)
		}
		return out
	case map[any]any:
		out := make(map[string]any, len(n))
		for key, value := range n {
			out[fmt.Sprint(key)] = normalise(value)
		}
		return out
	case []any:
		out := make([]any, len(n))
		for i, value := range n {
			out[i] = normalise(value)
		}
		return out
	}
	return node
}

// Expand replaces the references in text. secret reports whether it contained any.
func Expand(text string) (out string, secret bool, err error) {
	return ExpandFrom(os.LookupEnv, text)
}

// ExpandFrom is Expand with the variables of lookupEnv in place of those of the
// process.
func ExpandFrom(lookupEnv func(string) (string, bool), text string) (out string, secret bool, err error) {
	out, parts, err := expand(lookupEnv, text)
	return out, len(parts) > 0, err
}

// Parts returns the values of the references in text. It ignores those without a value.
func Parts(lookupEnv func(string) (string, bool), text string) []string {
	_, parts, _ := expand(lookupEnv, text)
	return parts
}

// expand replaces the references in text and returns the value of each, "" for one without.
func expand(lookupEnv func(string) (string, bool), text string) (out string, parts []string, err error) {
	out = reference.ReplaceAllStringFunc(text, func(match string) string {
		if strings.HasPrefix(match, "$$") {
			return match[1:]
		}
		value, rerr := lookUp(lookupEnv, match[2:len(match)-1])
		if rerr != nil && err == nil {
			err = rerr
		}
		parts = append(parts, value)
		return value
	})
	return out, parts, err
}

// lookUp returns the value of a reference.
func lookUp(lookupEnv func(string) (string, bool), ref string) (string, error) {
	scheme, name, _ := strings.Cut(ref, ":")
	switch scheme {
	case "env":
		if value, ok := lookupEnv(name); ok {
			return value, nil
		}
		return "", fmt.Errorf("${%s}: the variable is not set", ref)
	case "file":
		text, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("${%s}: %w", ref, err)
		}
		return strings.TrimRight(string(text), "\r\n"), nil
	}
	return "", fmt.Errorf("${%s}: want ${env:NAME} or ${file:/path}", ref)
}
