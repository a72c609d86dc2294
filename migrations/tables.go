package migrations

import (
	"regexp"
	"slices"
)

var createTable = regexp.MustCompile(`(?im)^\s*CREATE TABLE (?:IF NOT EXISTS )?([a-z0-9_]+)`)

// Tables returns the names of all tables that a step of a dialect creates, sorted, also
// of those that a later step drops.
func Tables(d Dialect) ([]string, error) {
	steps, err := Load(d)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range steps {
		for _, m := range createTable.FindAllStringSubmatch(s.Up, -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
