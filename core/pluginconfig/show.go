package pluginconfig

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/web"
)

// Config is a configuration as it may be shown.
type Config struct {
	Name   string `json:"name"`
	Plugin string `json:"plugin"`
	Kind   string `json:"kind"`
	// ManagedBy is api or file.
	ManagedBy string `json:"managed_by"`
	// Config has settings.StoredSecret in place of secrets. It is null for an instance of
	// the file whose schema is not known.
	Config    map[string]any  `json:"config"`
	Schema    json.RawMessage `json:"schema"`
	Version   int64           `json:"version"`
	UpdatedAt web.Time        `json:"updated_at"`
	UpdatedBy string          `json:"updated_by,omitempty"`
	// YAML is the same for the config file.
	YAML string `json:"yaml,omitempty"`
}

// Get returns the configuration of an instance, of the file or of the API.
func (s *Service) Get(ctx context.Context, name string) (Config, error) {
	if one, _ := s.instances.ofFile(name); one != nil {
		out := Config{Name: name, Plugin: one.Use, Kind: one.Kind, ManagedBy: "file"}
		if !one.External() && !one.Attached() {
			s.describe(&out, func(tree map[string]any) map[string]any { return cover(one.Config, tree) })
		}
		return out, nil
	}
	r, err := s.store.find(ctx, name)
	if err != nil {
		return Config{}, err
	}
	if r == nil {
		return Config{}, errNotFound
	}
	config, err := decode([]byte(r.Config))
	if err != nil {
		return Config{}, err
	}
	out := Config{Name: name, Plugin: r.Plugin, Kind: r.Kind, ManagedBy: "api", Version: r.Version, UpdatedAt: web.Time(time.UnixMicro(r.UpdatedAt).UTC()), UpdatedBy: r.UpdatedBy}
	s.describe(&out, func(tree map[string]any) map[string]any { return cover(config, tree) })
	return out, nil
}

// describe adds the schema, the config and its text for the file.
func (s *Service) describe(c *Config, config func(tree map[string]any) map[string]any) {
	source := s.plugins.Schema(c.Plugin, c.Kind)
	tree, err := schemaOf(source)
	if err != nil {
		return // a plugin of another version of the server
	}
	c.Schema, c.Config = source, config(tree)
	shown := c.Config
	if c.ManagedBy != "file" {
		shown = s.forFile(shown, tree)
	}
	c.YAML = fileText(Change{Name: c.Name, Plugin: c.Plugin, Kind: c.Kind, Config: shown}, tree)
}

// forFile returns a config of the API for the config file: there a relative path is one of
// the working directory.
func (s *Service) forFile(config, tree map[string]any) map[string]any {
	if absolute, err := s.files.resolve(config, tree, nil); err == nil {
		return absolute
	}
	return config
}

// Available is a bundled plugin used as a kind.
type Available struct {
	Plugin      string          `json:"plugin"`
	Kind        string          `json:"kind"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// Available returns the bundled plugins, by name.
func (s *Service) Available() []Available {
	out := []Available{}
	for _, name := range s.plugins.Names {
		for _, kind := range s.kinds(name) {
			source := s.plugins.Schema(name, kind)
			tree, err := schemaOf(source)
			if err != nil {
				continue
			}
			description, _ := tree["description"].(string)
			out = append(out, Available{name, kind, description, source})
		}
	}
	return out
}

// inFile is an instance in the config file.
type inFile struct {
	Name   string         `yaml:"name"`
	Kind   string         `yaml:"kind"`
	Use    string         `yaml:"use"`
	Config map[string]any `yaml:"config,omitempty"`
}

// fileText returns what to write into the config file. Secrets are references to variables.
func fileText(c Change, tree map[string]any) string {
	config, _ := walk(c.Config, tree, "", false, func(l leaf) (any, error) { // never returns an error
		switch v := l.value.(type) {
		case json.Number:
			if whole, err := v.Int64(); err == nil {
				return whole, nil
			}
			return v.Float64()
		case string:
			if !l.secret || v == "" || secret.IsReference(v) {
				return v, nil
			}
		}
		if !l.secret || l.value == nil {
			return l.value, nil
		}
		return "${env:" + variable(c.Name+l.at) + "}", nil
	})
	tree, _ = config.(map[string]any)
	var doc struct {
		Plugins struct {
			Instances []inFile `yaml:"instances"`
		} `yaml:"plugins"`
	}
	doc.Plugins.Instances = []inFile{{c.Name, c.Kind, c.Plugin, tree}}
	var b strings.Builder
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if e.Encode(doc) != nil || e.Close() != nil {
		return ""
	}
	return b.String()
}

// variable returns the name of an environment variable.
func variable(path string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, path)
}
