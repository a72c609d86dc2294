package app

import (
	"errors"
	"fmt"
	"os"

	"github.com/guidonhq/guidon/core/config"
	"github.com/guidonhq/guidon/core/config/yamlfile"
	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/web"
)

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
