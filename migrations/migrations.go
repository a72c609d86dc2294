// Package migrations holds the steps that build the database schema, one pair
// of files a step and a pair for each dialect, embedded in the binary.
//
// A step is named NNNN_what.up.sql (forward) and NNNN_what.down.sql (back).
// Its number is its identity, not its position: packages own ranges of
// numbers, gaps are normal, and a step with a lower number that arrives in a
// later release is applied all the same. A published step is never edited;
// the next step corrects it. core/db applies them, each in a transaction of
// its own; a file therefore holds plain statements and no BEGIN or COMMIT.
package migrations

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// Dialect names a folder of steps.
type Dialect string

// The dialects that have steps.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// Step is one change of the schema and the way back.
type Step struct {
	Number int
	Name   string
	Up     string
	Down   string
}

// Load returns the embedded steps of a dialect, ascending by number. It fails
// only when the files themselves are wrong, which a test of this package finds.
func Load(d Dialect) ([]Step, error) {
	sub, err := fs.Sub(files, string(d))
	if err != nil {
		return nil, fmt.Errorf("read migrations of %s: %w", d, err)
	}
	return Parse(sub)
}

var fileName = regexp.MustCompile(`^(\d{4})_([a-z0-9_]+)\.(up|down)\.sql$`)

// Parse reads steps from the root of fsys, ascending by number. A badly named
// file, a number used for two names, an empty file and a step without its up
// or its down file are errors.
func Parse(fsys fs.FS) ([]Step, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	steps := map[int]*Step{}
	for _, e := range entries {
		if err := add(steps, fsys, e.Name()); err != nil {
			return nil, err
		}
	}
	return sorted(steps)
}

func add(steps map[int]*Step, fsys fs.FS, name string) error {
	m := fileName.FindStringSubmatch(name)
	if m == nil {
		return fmt.Errorf("migration file %q is not named NNNN_what.up.sql or NNNN_what.down.sql", name)
	}
	number, err := strconv.Atoi(m[1])
	if err != nil || number == 0 {
		return fmt.Errorf("migration file %q needs a number from 0001", name)
	}
	s := steps[number]
	if s == nil {
		s = &Step{Number: number, Name: m[2]}
		steps[number] = s
	}
	if s.Name != m[2] {
		return fmt.Errorf("migration number %04d is used twice, for %q and %q", number, s.Name, m[2])
	}
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return fmt.Errorf("read migration %q: %w", name, err)
	}
	if strings.TrimSpace(string(text)) == "" {
		return fmt.Errorf("migration file %q is empty", name)
	}
	if m[3] == "up" {
		s.Up = string(text)
	} else {
		s.Down = string(text)
	}
	return nil
}

func sorted(steps map[int]*Step) ([]Step, error) {
	out := make([]Step, 0, len(steps))
	for _, s := range steps {
		if s.Up == "" || s.Down == "" {
			return nil, fmt.Errorf("migration %04d_%s lacks its up or its down file", s.Number, s.Name)
		}
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Step) int { return cmp.Compare(a.Number, b.Number) })
	return out, nil
}
