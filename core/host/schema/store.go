package schema

import (
	"os"
	"path/filepath"

	"github.com/guidonhq/guidon/core/host/settings"
)

// Store finds the schemas of plugins that do not run.
type Store struct {
	// Dir keeps the schemas of third-party plugins.
	Dir string
	// Bundled returns the schema of a bundled plugin, or nil. It may be nil.
	Bundled func(name, kind string) []byte
}

// Find returns the schema for an instance, or nil when it is unknown. executable is
// the path of the verified copy of a third-party plugin.
func (s *Store) Find(c settings.Instance, executable string) *Schema {
	var source []byte
	if c.External() {
		source, _ = os.ReadFile(s.file(c, executable))
	} else if s.Bundled != nil && !c.Attached() {
		source = s.Bundled(c.Use, c.Kind)
	}
	if len(source) == 0 {
		return nil
	}
	compiled, err := Compile(source)
	if err != nil {
		return nil // reported when the plugin runs
	}
	return compiled
}

// Keep stores the schema of a third-party plugin for the next start. Errors are
// ignored: the plugin then checks its config itself.
func (s *Store) Keep(c settings.Instance, executable string, source []byte) {
	if !c.External() || len(source) == 0 {
		return
	}
	path := s.file(c, executable)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return
	}
	part := path + ".part"
	if os.WriteFile(part, source, 0o600) == nil {
		_ = os.Rename(part, path)
	}
}

// file returns the path of a stored schema. The name of a verified copy is its
// checksum.
func (s *Store) file(c settings.Instance, executable string) string {
	return filepath.Join(s.Dir, filepath.Base(executable)+"."+c.Kind+".json")
}
