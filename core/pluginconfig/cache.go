package pluginconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A node that starts while Postgres is away runs the instances that it had last, so that
// the log keeps what their sinks have not taken. The file holds what the table holds:
// secrets are encrypted.

// fileName is the name of the file in the data directory.
const fileName = "plugin-configs.json"

func (s *Service) path() string { return filepath.Join(s.dir, fileName) }

// keep writes the records to the file. Without a file a later start waits for Postgres.
func (s *Service) keep(records []record) error {
	if !s.store.db.Postgres() || s.dir == "" {
		return nil
	}
	raw, err := json.Marshal(records)
	if err != nil {
		return fmt.Errorf("encode the configuration of plugins: %w", err)
	}
	if last, err := os.ReadFile(s.path()); err == nil && string(last) == string(raw) || len(records) == 0 && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	part := s.path() + ".part"
	if err := os.WriteFile(part, raw, 0o600); err != nil {
		return fmt.Errorf("keep the configuration of plugins: %w", err)
	}
	if err := os.Rename(part, s.path()); err != nil {
		return fmt.Errorf("keep the configuration of plugins: %w", err)
	}
	return nil
}

// kept returns the records in the file, none without a file.
func (s *Service) kept() (out []record, err error) {
	raw, err := os.ReadFile(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("read the kept configuration of plugins: %w", err)
	}
	return out, nil
}
