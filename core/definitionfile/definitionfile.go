// Package definitionfile is the one form of definitions in files: cohorts, dashboards,
// flags, actions, scheduled changes and group types of projects, roles, and the keys and
// users of a fresh server. guidon export writes it, guidon import and seed files read it.
//
// A definition has the fields of the management API. It refers to cohorts, flags,
// dashboards and group types by name, because ids differ between servers: Name puts the
// names of a server into a definition, Resolve its ids. Definitions may refer to others
// that come later.
//
// Parse refuses unknown keys, duplicate names and wrong types, each with its line. It
// does not check filters and steps: the server does when it creates them, and the item
// has the line for its answer.
package definitionfile

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

// Schema is the JSON Schema of a file, for editors.
//
//go:embed seed.schema.json
var Schema []byte

// File is a parsed file.
type File struct {
	// Name is the name of the file, for errors.
	Name string
	// PersonalKey is the personal key of the first user; empty for a random one.
	PersonalKey string
	Roles       []Item // of the organization
	Projects    []Project
	Users       []User
}

// Project is a project with its definitions.
type Project struct {
	Line int
	Name string
	// Key is the project key; empty for a random one.
	Key string
	// Settings is the JSON object with the settings of the project; nil for none.
	Settings json.RawMessage
	// Retention is the JSON object of the retention rules; nil for none.
	Retention  json.RawMessage
	GroupTypes []Item
	// Definitions has the items of each of Kinds, by section.
	Definitions map[string][]Item
	// Scheduled are the scheduled changes of flags. Their Name is the key of the flag;
	// their Body lacks record_id, the id of the flag.
	Scheduled []Item
}

// User is a member of the organization.
type User struct {
	Line     int
	Email    string
	Name     string
	Level    string // member, admin or owner
	Operator bool
	// Key is the personal key of the user; empty makes none.
	Key string
}

// Item is a definition, a group type, a role, or a scheduled change.
type Item struct {
	Line int
	// Name is the value of the field that names it.
	Name string
	// Roles are the names of the roles that may edit a flag.
	Roles []string
	// Body is the JSON object for the management API, with names for ids.
	Body json.RawMessage
}

// Error is a list of problems of a file, in the order of their lines.
type Error struct {
	File     string
	Problems []Problem
}

// Problem is an error of one line.
type Problem struct {
	Line int
	Text string
}

// Error returns one line for each problem: FILE:LINE: text.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = fmt.Sprintf("%s:%d: %s", e.File, p.Line, p.Text)
	}
	return strings.Join(lines, "\n")
}
