package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"github.com/guidonhq/guidon/core/host/settings"
	"maps"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// A reference is written ${env:NAME} or ${file:/path}; $${ stands for ${ itself.
var reference = regexp.MustCompile(`\$?\$\{([^}]*)\}`)

// resolved is an instance's config ready to be sent: references stay as they
// are in the text, and what they stand for is kept apart.
type resolved struct {
	json    []byte
	secrets map[string][]byte // by JSON Pointer
	env     []string
	scrub   *scrubber
}

// resolve reads every reference in the config and the environment of an
// instance. The error names the place and the reference, never a value.
func resolve(c settings.Instance) (*resolved, error) {
	r := &resolved{secrets: map[string][]byte{}, scrub: &scrubber{}}
	tree, err := r.walk("", normalise(c.Config))
	if err != nil {
		return nil, err
	}
	if r.json, err = json.Marshal(tree); err != nil {
		return nil, fmt.Errorf("encode config: %w", err)
	}
	for _, name := range append([]string{"PATH", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}, c.Env.Allow...) {
		if value, ok := os.LookupEnv(name); ok {
			r.env = append(r.env, name+"="+value)
		}
	}
	for name, text := range c.Env.Set {
		value, secret, err := expand(text)
		if err != nil {
			return nil, fmt.Errorf("env.set.%s: %w", name, err)
		}
		if secret {
			r.scrub.add(value)
		}
		r.env = append(r.env, name+"="+value)
	}
	return r, nil
}

// digest tells apart what would run and what it would see; it tells nothing of a
// secret.
func (r *resolved) digest(argv []string) string {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q %q %q", argv, r.json, slices.Sorted(slices.Values(r.env)))
	for _, at := range slices.Sorted(maps.Keys(r.secrets)) {
		_, _ = fmt.Fprintf(sum, "%q %q", at, r.secrets[at])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// walk returns the tree to send and collects the secrets in it.
func (r *resolved) walk(at string, node any) (any, error) {
	switch n := node.(type) {
	case map[string]any:
		out := make(map[string]any, len(n))
		for key, value := range n {
			child, err := r.walk(at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key), value)
			if err != nil {
				return nil, err
			}
			out[key] = child
		}
		return out, nil
	case []any:
		out := make([]any, len(n))
		for i, value := range n {
			child, err := r.walk(at+"/"+strconv.Itoa(i), value)
			if err != nil {
				return nil, err
			}
			out[i] = child
		}
		return out, nil
	case string:
		value, secret, err := expand(n)
		if err != nil {
			return nil, fmt.Errorf("config%s: %w", at, err)
		}
		if !secret {
			return value, nil
		}
		r.secrets[at] = []byte(value)
		r.scrub.add(value)
		return n, nil
	}
	return node, nil
}

// normalise turns the maps of other decoders into map[string]any.
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

// expand replaces the references in text and reports whether there were any.
func expand(text string) (out string, secret bool, err error) {
	out = reference.ReplaceAllStringFunc(text, func(match string) string {
		if strings.HasPrefix(match, "$$") {
			return match[1:]
		}
		secret = true
		value, rerr := read(match[2 : len(match)-1])
		if rerr != nil && err == nil {
			err = rerr
		}
		return value
	})
	return out, secret, err
}

// read returns what a reference stands for.
func read(ref string) (string, error) {
	scheme, name, _ := strings.Cut(ref, ":")
	switch scheme {
	case "env":
		if value, ok := os.LookupEnv(name); ok {
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

// scrubber covers secrets in text that leaves the host. Its methods may be
// called from many goroutines.
type scrubber struct {
	mu       sync.Mutex
	values   []string
	replacer atomic.Pointer[strings.Replacer]
}

// add makes value a secret. Very short ones are not covered: that would hide
// ordinary words and protect nothing.
func (s *scrubber) add(value string) {
	if len(value) < 4 {
		return
	}
	values := []string{value}
	if quoted, err := json.Marshal(value); err == nil && string(quoted[1:len(quoted)-1]) != value {
		values = append(values, string(quoted[1:len(quoted)-1]))
	}
	s.cover(values)
}

// adopt makes the secrets of another scrubber ours, too.
func (s *scrubber) adopt(other *scrubber) {
	other.mu.Lock()
	values := slices.Clone(other.values)
	other.mu.Unlock()
	if len(values) > 0 {
		s.cover(values)
	}
}

func (s *scrubber) cover(values []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if !slices.Contains(s.values, v) {
			s.values = append(s.values, v)
		}
	}
	// Longest first, so that a secret inside another one leaves nothing over.
	sort.Slice(s.values, func(i, j int) bool { return len(s.values[i]) > len(s.values[j]) })
	pairs := make([]string, 0, 2*len(s.values))
	for _, v := range s.values {
		pairs = append(pairs, v, "[secret]")
	}
	s.replacer.Store(strings.NewReplacer(pairs...))
}

// clean returns text with every secret covered.
func (s *scrubber) clean(text string) string {
	if s == nil {
		return text
	}
	if r := s.replacer.Load(); r != nil {
		return r.Replace(text)
	}
	return text
}
