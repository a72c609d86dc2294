package app

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/guidonhq/guidon/core/config/yamlfile"
)

// Names of variables that Kubernetes and docker --link set for a service or a
// container called guidon or guidon-SOMETHING:
//
//	GUIDON_SERVICE_HOST=10.0.0.1           GUIDON_SERVICE_PORT_HTTP=8000
//	GUIDON_PORT_8000_TCP=tcp://10.0.0.1:8000  GUIDON_PORT_8000_TCP_ADDR=10.0.0.1
//
// No setting has such a name, and no misspelt one either.
var (
	serviceName = regexp.MustCompile(`^GUIDON_([A-Z0-9_]+_)?SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$`)
	portName    = regexp.MustCompile(`^GUIDON_([A-Z0-9_]+_)?PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR|START|END)|_PORT_(START|END))?$`)
	portValue   = regexp.MustCompile(`^(tcp|udp|sctp)://[^/]+:[0-9]+$`)
	linkEnvName = regexp.MustCompile(`^GUIDON_([A-Z0-9_]+_)?ENV_[A-Za-z0-9_]+$`)
	linkName    = regexp.MustCompile(`^GUIDON_([A-Z0-9_]+_)?NAME$`)
)

// isServiceLink reports whether Kubernetes or docker set a variable to announce
// a service. GUIDON_PORT and GUIDON_NAME are told from a misspelt setting by
// their values: tcp://10.0.0.1:8000 and /web/guidon.
func isServiceLink(name, value string) bool {
	switch {
	case serviceName.MatchString(name), portName.MatchString(name), linkEnvName.MatchString(name):
		return true
	case strings.HasSuffix(name, "_PORT"):
		return portValue.MatchString(value)
	}
	return linkName.MatchString(name) && strings.HasPrefix(value, "/") && strings.Count(value, "/") == 2
}

// Setting is a setting with its value as written, before references to secrets are
// resolved.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// From is "default", the variable of the environment, or the file with the line.
	From string `json:"from"`
	// Changed reports whether the value differs from the default.
	Changed bool `json:"changed"`
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
	for _, key := range Keys() {
		before := written(defaults.Values(), key)
		s := Setting{Key: key, Value: before, From: "default"}
		if line := file.Line(key); line > 0 {
			s.Value, s.From = written(file.Values(), key), fmt.Sprintf("%s:%d", path, line)
		}
		if value, ok := fromEnv[key].(string); ok {
			s.Value, s.From = value, envName(key)
		}
		s.Changed = s.Value != before
		s.Value = masked(key, s.Value)
		out = append(out, s)
	}
	if n := len(list(file.Values(), "plugins", "instances")); n > 0 {
		out = append(out, Setting{Key: "plugins.instances", Value: fmt.Sprintf("%d configured", n), From: fmt.Sprintf("%s:%d", path, file.Line("plugins.instances")), Changed: true})
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

var (
	secretKey      = regexp.MustCompile(`(^|[._])(secret_key|access_key|encryption_key|password|token)$`)
	urlPassword    = regexp.MustCompile(`(://[^/@:\s]*:)([^/\s]+)(@)`) // up to the last @, as URLs are parsed
	onlyReferences = regexp.MustCompile(`^(\$\{[^}]*\}[\s,]*)+$`)
	keyword        = regexp.MustCompile(`(?i)(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)()`)
)

// masked returns the value without passwords. References to secrets stay.
func masked(key, value string) string {
	if secretKey.MatchString(key) && value != "" && !onlyReferences.MatchString(value) {
		return "***"
	}
	return maskPart(keyword, maskPart(urlPassword, value))
}

// maskPart masks the second group of each match, unless it is a reference to a secret.
func maskPart(pattern *regexp.Regexp, value string) string {
	return pattern.ReplaceAllStringFunc(value, func(match string) string {
		part := pattern.FindStringSubmatch(match)
		if onlyReferences.MatchString(part[2]) {
			return match
		}
		return part[1] + "***" + part[3]
	})
}
