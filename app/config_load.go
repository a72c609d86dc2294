package app

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"

	"github.com/guidonhq/guidon/core/config"
	"github.com/guidonhq/guidon/core/config/servicelink"
	"github.com/guidonhq/guidon/core/config/yamlfile"
	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/text"
)

// envPrefix starts the name of every setting given by the environment:
// http.address is GUIDON_HTTP_ADDRESS.
const envPrefix = "GUIDON_"

// reservedEnv lists prefixes of GUIDON_ variables that are not settings of the
// server: the configuration file, the variables of plugins, the knobs of tests.
var reservedEnv = []string{"GUIDON_CONFIG", "GUIDON_PERSONAL_KEY", "GUIDON_CONTEXT", "GUIDON_SERVER", "GUIDON_PROJECT", "GUIDON_BENCH_", "GUIDON_PLUGIN_", "GUIDON_TEST_", "GUIDON_CRASH_", "GUIDON_E2E_", "GUIDON_SOAK_"}

// Load reads the configuration: the defaults, then the YAML file at path when
// path is not empty, then the GUIDON_* names of environ (as from os.Environ).
// Texts may contain references to secrets, which are resolved with environ; the
// error never contains a resolved value. An unknown key is an error that names
// the nearest known key. The error names every setting that cannot be read or has an
// invalid value, each with its line in the file. Every section is valid when Load
// returns without an error.
func Load(path string, environ []string) (Config, error) {
	var source []byte
	if path != "" {
		var err error
		if source, err = os.ReadFile(path); err != nil {
			return Config{}, fmt.Errorf("read config: %w", err)
		}
	}
	return loadSource(path, source, environ)
}

// loadSource is Load with the content of the file.
func loadSource(path string, source []byte, environ []string) (Config, error) {
	cfg := DefaultConfig()
	cfg.Secrets = &secret.Redactor{}
	file, err := yamlfile.Parse(source)
	if err != nil {
		return Config{}, fmt.Errorf("read config %s: %w", path, err)
	}
	fromEnv, err := fromEnviron(environ, leaves("", reflect.TypeOf(cfg)))
	if err != nil {
		return Config{}, err
	}
	src := config.Source{LookupEnv: lookUpIn(environ), Secrets: cfg.Secrets}
	inFile := config.Decode(&cfg, file.Values(), src)
	src.Name = envName
	inEnv := config.Decode(&cfg, nested(fromEnv), src)
	// A value that is not of the type of its setting leaves the default there.
	if err = errors.Join(inFile, inEnv, cfg.Validate()); err != nil {
		return Config{}, describe(path, file.Locate(err, fromEnv), cfg.Secrets)
	}
	return cfg, nil
}

// lookUpIn returns the lookup of variables in environ. The last entry wins.
func lookUpIn(environ []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, pair := range slices.Backward(environ) {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
}

// nested returns dotted keys as sections.
func nested(flat map[string]any) map[string]any {
	k := koanf.New(".")
	_ = k.Load(confmap.Provider(flat, "."), nil) // a map in memory
	return k.Raw()
}

// describe returns the error of a configuration: one sentence, or a list of them
// below a line with their number. It contains no secret.
func describe(path string, err error, secrets *secret.Redactor) error {
	at := "config"
	if path != "" {
		at += " " + path
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) == 1 {
		return errors.New(secrets.Redact(at + ": " + lines[0]))
	}
	return errors.New(secrets.Redact(fmt.Sprintf("%s: %d errors\n  %s", at, len(lines), strings.Join(lines, "\n  "))))
}

// envName returns the name of a setting in the environment.
func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// fromEnviron returns the settings in environ. Lists of sections, such as the
// plugins, can only be set in the file.
func fromEnviron(environ, known []string) (map[string]any, error) {
	byName := make(map[string]string, len(known))
	for _, key := range known {
		byName[envName(key)] = key
	}
	out := map[string]any{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.ContainsFunc(reservedEnv, func(f string) bool { return strings.HasPrefix(name, f) }) {
			continue
		}
		key, ok := byName[name]
		if !ok && servicelink.Is(name, value) {
			continue
		}
		if !ok {
			return nil, fmt.Errorf("environment: %s is not a setting; did you mean %s?", name, nearest(name, config.SortedKeys(byName)))
		}
		out[key] = value
	}
	return out, nil
}

// leaves lists the dotted keys of every single-valued setting below t.
func leaves(at string, t reflect.Type) []string {
	var out []string
	fields := config.Fields(t)
	for _, name := range config.SortedKeys(fields) {
		ft := fields[name].Type
		switch ft.Kind() {
		case reflect.Struct:
			out = append(out, leaves(config.Join(at, name), ft)...)
		case reflect.Map:
		case reflect.Slice:
			if ft.Elem().Kind() == reflect.String {
				out = append(out, config.Join(at, name))
			}
		default:
			out = append(out, config.Join(at, name))
		}
	}
	return out
}

// nearest returns the most similar name of known; known must not be empty.
func nearest(name string, known []string) string {
	return text.Nearest(name, slices.Values(known), math.MaxInt)
}

// FindConfig returns the path of the configuration when the command line names
// none: $GUIDON_CONFIG, or
// guidon.yaml in the working directory when there is one, or nothing.
func FindConfig(environ []string) string {
	for _, pair := range environ {
		if path, ok := strings.CutPrefix(pair, "GUIDON_CONFIG="); ok && path != "" {
			return path
		}
	}
	if _, err := os.Stat("guidon.yaml"); err == nil {
		return "guidon.yaml"
	}
	return ""
}

// Keys lists every single-valued setting by its dotted name.
func Keys() []string { return leaves("", reflect.TypeFor[Config]()) }
