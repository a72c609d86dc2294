// Package ephemeral prepares a server for tests: a data directory that is removed at
// the end, content from a seed file, and addresses and keys as JSON for scripts.
package ephemeral

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/definitionfile"
	"github.com/guidonhq/guidon/core/seed"
)

// Flags are the flags of guidon serve for tests.
type Flags struct {
	Ephemeral   bool   `help:"Keep all data in a temporary directory, which is removed at the end."`
	Seed        string `help:"Fill an empty server with the projects, keys, flags, cohorts, actions and users of this YAML file." type:"existingfile" placeholder:"FILE"`
	Address     string `help:"Listen here instead of http.address; port 0 takes a free port, also for the admin address." placeholder:"HOST:PORT"`
	ReadyFile   string `help:"Write addresses and keys to this file, as JSON, once the server answers." placeholder:"FILE"`
	ProjectKey  string `help:"Key of the first project, with --ephemeral or --seed." placeholder:"KEY"`
	PersonalKey string `help:"Personal key of the first user, with --ephemeral or --seed." placeholder:"KEY"`
}

// Ready is the JSON line of a server that answers.
type Ready struct {
	URL      string `json:"url"`
	AdminURL string `json:"admin_url,omitempty"`
	PID      int    `json:"pid"`
	*seed.Result
}

// Prepare changes the configuration and the options of a server as f asks for. The
// function that it returns ends what it began and is never nil.
func (f Flags) Prepare(cfg *app.Config, opts *app.Options) (end func() error, err error) {
	end = func() error { return nil }
	if f.Address != "" {
		if err := setAddress(cfg, f.Address); err != nil {
			return end, err
		}
	}
	if f.Ephemeral || f.Seed != "" {
		if opts.Seed, err = f.content(); err != nil {
			return end, err
		}
		opts.Ready = f.ready(opts.Out)
	} else if f.ProjectKey != "" || f.PersonalKey != "" || f.ReadyFile != "" {
		return end, errors.New("--project-key, --personal-key and --ready-file need --ephemeral or --seed")
	}
	if !f.Ephemeral {
		return end, nil
	}
	if cfg.Database.URL != "" {
		return end, errors.New("--ephemeral keeps everything in a temporary directory: database.url must not be set")
	}
	dir, err := os.MkdirTemp("", "guidon-ephemeral-")
	if err != nil {
		return end, err
	}
	cfg.DataDir = dir
	return func() error { return os.RemoveAll(dir) }, nil
}

// Explain returns the error of a server that ended. One of the seed file in a database
// that stays has a sentence on what to do with it.
func (f Flags) Explain(err error) error {
	if _, ok := errors.AsType[*definitionfile.Error](err); !ok || f.Ephemeral {
		return err
	}
	return fmt.Errorf("%w\nthe database keeps what was made before, and --seed fills only an empty one: remove this database before the next start", err)
}

// setAddress sets the public address. A free port takes a free one for operators, too.
func setAddress(cfg *app.Config, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--address: %q is not HOST:PORT", address)
	}
	cfg.HTTP.Address = address
	if port == "0" && cfg.HTTP.AdminAddress != "" {
		cfg.HTTP.AdminAddress = "127.0.0.1:0"
	}
	return cfg.Validate()
}

// content reads the seed file and adds the keys of the flags.
func (f Flags) content() (*definitionfile.File, error) {
	file := &definitionfile.File{Name: "--personal-key"}
	if f.Seed != "" {
		source, err := os.ReadFile(f.Seed)
		if err != nil {
			return nil, err
		}
		if file, err = definitionfile.Parse(f.Seed, source); err != nil {
			return nil, err
		}
	}
	if f.PersonalKey != "" {
		file.PersonalKey = f.PersonalKey
	}
	if f.ProjectKey != "" {
		if len(file.Projects) == 0 {
			file.Projects = []definitionfile.Project{{Name: "My project"}}
		}
		file.Projects[0].Key = f.ProjectKey
	}
	return file, nil
}

// ready returns the function that prints the JSON line, and writes it to the file.
func (f Flags) ready(out io.Writer) func(*app.Server) error {
	return func(s *app.Server) error {
		line, err := json.Marshal(Ready{URL: s.URL, AdminURL: s.AdminURL, PID: os.Getpid(), Result: s.Seeded})
		if err != nil {
			return err
		}
		line = append(line, '\n')
		if f.ReadyFile != "" {
			if err := writeFile(f.ReadyFile, line); err != nil {
				return fmt.Errorf("write --ready-file: %w", err)
			}
		}
		_, err = out.Write(line)
		return err
	}
}

// writeFile writes a file that appears only when it is complete. Its owner alone may
// read it, for the keys.
func writeFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".guidon-ready-")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}
