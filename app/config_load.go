package app

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"

	"github.com/guidonhq/guidon/core/text"
)

// envPrefix starts the name of every setting given by the environment:
// http.address is GUIDON_HTTP_ADDRESS.
const envPrefix = "GUIDON_"

// reservedEnv lists prefixes of GUIDON_ variables that are not settings of the
// server: the configuration file, the variables of plugins, the knobs of tests.
var reservedEnv = []string{"GUIDON_CONFIG", "GUIDON_PERSONAL_KEY", "GUIDON_BENCH_", "GUIDON_PLUGIN_", "GUIDON_TEST_", "GUIDON_CRASH_", "GUIDON_E2E_", "GUIDON_SOAK_"}

// Load reads the configuration: the defaults, then the YAML file at path when
// path is not empty, then the GUIDON_* names of environ (as from os.Environ).
// An unknown key is an error that names the nearest known key. Every section is
// valid when Load returns without an error.
func Load(path string, environ []string) (Config, error) {
	cfg := DefaultConfig()
	k := koanf.New(".")
	if path != "" {
		if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
			return Config{}, fmt.Errorf("read config %s: %w", path, err)
		}
		given := k.Raw()
		if err := checkKeys(path, "", given, reflect.TypeOf(cfg)); err != nil {
			return Config{}, err
		}
		dropEmpty(given, reflect.TypeOf(cfg))
		k = koanf.New(".")
		if err := k.Load(confmap.Provider(given, ""), nil); err != nil {
			return Config{}, fmt.Errorf("read config %s: %w", path, err)
		}
	}
	env, err := fromEnviron(environ, leaves("", reflect.TypeOf(cfg)))
	if err != nil {
		return Config{}, err
	}
	if err := k.Load(confmap.Provider(env, "."), nil); err != nil {
		return Config{}, fmt.Errorf("read the environment: %w", err)
	}
	if err := k.UnmarshalWithConf("", &cfg, decoding(&cfg)); err != nil {
		return Config{}, fmt.Errorf("read config%s: %w", sources(path, env), err)
	}
	return cfg, cfg.Validate()
}

// sources names the origins of the settings, for an error.
func sources(path string, env map[string]any) string {
	var out []string
	if path != "" {
		out = append(out, path)
	}
	for _, key := range keysOf(env) {
		out = append(out, envName(key))
	}
	if len(out) == 0 {
		return ""
	}
	return " from " + strings.Join(out, ", ")
}

// envName returns the name of a setting in the environment.
func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func decoding(into *Config) koanf.UnmarshalConf {
	return koanf.UnmarshalConf{Tag: "koanf", DecoderConfig: &mapstructure.DecoderConfig{
		Result:           into,
		TagName:          "koanf",
		WeaklyTypedInput: true,
		ZeroFields:       true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			mapstructure.StringToTimeDurationHookFunc(),
			mapstructure.StringToSliceHookFunc(","),
		),
	}}
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
		if !ok {
			return nil, fmt.Errorf("environment: %s is not a setting; did you mean %s?", name, nearest(name, keysOf(byName)))
		}
		out[key] = value
	}
	return out, nil
}

// checkKeys compares the content of the file with the type that will hold it. It
// refuses the first unknown key, and a single value or a list in place of a
// section.
func checkKeys(source, at string, value any, t reflect.Type) error {
	switch t.Kind() {
	case reflect.Pointer:
		return checkKeys(source, at, value, t.Elem())
	case reflect.Slice:
		items, ok := value.([]any)
		if !ok && value != nil && t.Elem().Kind() == reflect.Struct {
			return fmt.Errorf("%s: %q must be a list", source, at)
		}
		for i, item := range items {
			if err := checkKeys(source, fmt.Sprintf("%s[%d]", at, i), item, t.Elem()); err != nil {
				return err
			}
		}
	case reflect.Struct:
		fields := fieldsOf(t)
		given, ok := value.(map[string]any)
		if !ok && value != nil {
			return fmt.Errorf("%s: %q holds settings such as %q and cannot be a value itself", source, at, join(at, keysOf(fields)[0]))
		}
		names := keysOf(given)
		for _, name := range names {
			ft, ok := fields[name]
			if !ok {
				return fmt.Errorf("%s: unknown key %q; did you mean %q?", source, join(at, name), join(at, nearest(name, keysOf(fields))))
			}
			if err := checkKeys(source, join(at, name), given[name], ft); err != nil {
				return err
			}
		}
	default:
	}
	return nil
}

// dropEmpty removes settings without a value, such as a section with every line
// commented out: they keep their defaults.
func dropEmpty(given map[string]any, t reflect.Type) {
	for name, ft := range fieldsOf(t) {
		value, ok := given[name]
		section, _ := value.(map[string]any)
		switch {
		case ok && value == nil:
			delete(given, name)
		case section != nil && ft.Kind() == reflect.Struct:
			dropEmpty(section, ft)
		}
	}
}

// leaves lists the dotted keys of every single-valued setting below t.
func leaves(at string, t reflect.Type) []string {
	var out []string
	fields := fieldsOf(t)
	for _, name := range keysOf(fields) {
		ft := fields[name]
		switch ft.Kind() {
		case reflect.Struct:
			out = append(out, leaves(join(at, name), ft)...)
		case reflect.Map:
		case reflect.Slice:
			if ft.Elem().Kind() == reflect.String {
				out = append(out, join(at, name))
			}
		default:
			out = append(out, join(at, name))
		}
	}
	return out
}

func fieldsOf(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("koanf"), ",")
		switch {
		case options == "squash":
			for n, ft := range fieldsOf(f.Type) {
				out[n] = ft
			}
		case name != "" && name != "-":
			out[name] = f.Type
		}
	}
	return out
}

func keysOf[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// nearest returns the most similar name of known; known must not be empty.
func nearest(name string, known []string) string {
	return text.Nearest(name, slices.Values(known), math.MaxInt)
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
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
