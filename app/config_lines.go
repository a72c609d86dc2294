package app

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/guidonhq/guidon/core/config"
	"github.com/guidonhq/guidon/core/config/yamlfile"
	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/web"
)

// settingInError finds the key at the begin of an error, and the key within a list
// item that follows the item: plugins.instances[0] (name): delivery.sample.
var settingInError = regexp.MustCompile(`^(?:unknown key )?"?([a-z][a-z0-9_]*(?:\.[A-Za-z0-9_]+|\[\d+\])*)"?:?(?: \([^)]*\): ([a-z_0-9.\[\]]+))?`)

// locate adds to each line of err where in the file the setting is that it names.
// Settings that the environment overrides have no line.
func locate(err error, file *yamlfile.File, fromEnv map[string]any) error {
	lines := strings.Split(err.Error(), "\n")
	for i, text := range lines {
		m := settingInError.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if _, overridden := fromEnv[m[1]]; overridden {
			continue
		}
		at := file.Line(m[1])
		if inner := file.Line(m[1] + "." + strings.TrimSuffix(m[2], ":")); m[2] != "" && inner > 0 {
			at = inner
		}
		if at > 0 {
			lines[i] = fmt.Sprintf("line %d: %s", at, text)
		}
	}
	return errors.New(strings.Join(lines, "\n"))
}

// LoadHTTP returns the http section of the configuration that Load reads, for
// commands that only need the address of a server. broken is the error of Load: the
// section is also returned if the rest of the file is wrong or cannot be parsed. err
// is not nil if the section itself cannot be used.
func LoadHTTP(path string, environ []string) (section web.Config, broken, err error) {
	cfg, broken := Load(path, environ)
	if broken == nil {
		return cfg.HTTP, nil, nil
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return web.Config{}, broken, broken
	}
	file, ok, err := yamlfile.Section(source, "http")
	if err != nil {
		return web.Config{}, broken, fmt.Errorf("read config %s: %w", path, err)
	}
	given := map[string]any{}
	if ok {
		given = file.Values()
	}
	return decodeHTTP(path, given, environ, broken)
}

// decodeHTTP decodes the http section of given and of the environment.
func decodeHTTP(path string, given map[string]any, environ []string, broken error) (web.Config, error, error) {
	fromEnv, err := fromEnviron(environ, Keys())
	if err != nil {
		return web.Config{}, broken, err
	}
	cfg := struct {
		HTTP web.Config `koanf:"http"`
	}{web.DefaultConfig()}
	secrets := &secret.Redactor{}
	src := config.Source{LookupEnv: lookUpIn(environ), Secrets: secrets}
	overrides, _ := nested(fromEnv)["http"].(map[string]any)
	err = errors.Join(config.Decode(&cfg, given, src), config.Decode(&cfg.HTTP, overrides, src))
	if err != nil {
		return web.Config{}, broken, describe(path, err, secrets)
	}
	return cfg.HTTP, broken, nil
}
