// Package roles selects the work of a server in a fleet: capture, decisions of flags,
// management, processing, delivery. By default a server does all.
//
// Without a role its background work does not start, and its routes answer 503
// role_missing. That is no 404, because clients drop events that are refused with a status
// of 4xx, and repeat those that are refused with 503.
//
// Not every set of roles can work. process and deliver go together: the deliveries of a
// partition run on the server that processes it. All other sets need a log that the
// servers share, because the journal in the data directory is read by the server that
// writes it, and deletions of persons are recorded in it. Only decide alone does without
// a log.
//
// A server with decide alone needs no more than the right to read the database. It does
// not migrate it, creates no first accounts, and writes nothing: no beat, no salts of
// visitors without cookies, no use of keys, no hash keys of flags with continuity.
package roles

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

// The roles.
const (
	Capture = "capture" // takes events in
	Decide  = "decide"  // decides flags, and hands them out for local evaluation
	Manage  = "manage"  // serves management: the API with personal keys
	Process = "process" // processes events, and runs background jobs
	Deliver = "deliver" // delivers events to sinks
)

// All lists the roles.
func All() []string { return []string{Capture, Decide, Manage, Process, Deliver} }

// Workers are the roles of which a server with one stores and erases data.
func Workers() []string { return []string{Manage, Process} }

// Writers are the roles of which a server with one writes to the database.
func Writers() []string { return []string{Capture, Manage, Process} }

// Set is the roles of a server. The zero value has all.
type Set struct{ names []string }

// New returns the roles with these names in the order of All; without names all roles.
func New(names []string) (Set, error) {
	if len(names) == 0 {
		return Set{}, nil
	}
	for _, n := range names {
		if !slices.Contains(All(), n) {
			return Set{}, fmt.Errorf("roles: there is no role %q: use %s", n, strings.Join(All(), ", "))
		}
	}
	s := Set{names: slices.DeleteFunc(All(), func(n string) bool { return !slices.Contains(names, n) })}
	if s.Has(Process) != s.Has(Deliver) {
		return Set{}, errors.New("roles: process and deliver go together: the deliveries of a partition run on the server that processes it")
	}
	if len(s.names) == len(All()) {
		return Set{}, nil
	}
	return s, nil
}

// Check returns an error for names that New refuses, and for roles that cannot work
// with this database and without a log that servers share.
func Check(names []string, postgres, sharedLog bool) error {
	s, err := New(names)
	switch {
	case err != nil:
		return err
	case s.All():
		return nil
	case !postgres:
		return errors.New("roles: a server with some roles only shares its database with others, which needs Postgres: set database.url to postgres://…, or remove roles")
	case !sharedLog && !s.DecideOnly():
		return errors.New("roles: without a log that servers share (journal.url) a server has all roles, or decide alone")
	}
	return nil
}

// Names lists the roles.
func (s Set) Names() []string {
	if s.All() {
		return All()
	}
	return slices.Clone(s.names)
}

// All reports whether the server has all roles.
func (s Set) All() bool { return s.names == nil }

// Has reports whether the server has one of the roles.
func (s Set) Has(names ...string) bool {
	return s.All() || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(s.names, n) })
}

// DecideOnly reports whether the server decides flags and does nothing else.
func (s Set) DecideOnly() bool { return len(s.names) == 1 && s.names[0] == Decide }

// CodeMissing is the code of answers to requests that need a role which the server does
// not have.
const CodeMissing = "role_missing"

// retryAfter is when a client may try again, which may reach another server then.
const retryAfter = 5 * time.Second

// Refuse returns the answer to requests of a route that the server does not serve; nil
// for one that it serves.
func (s Set) Refuse(path string) error {
	needs := ForPath(path)
	if len(needs) == 0 || s.Has(needs...) {
		return nil
	}
	return fault.Newf(fault.Unavailable, CodeMissing, "This server does not have the role %s, which serves this path; it has %s. Send the request to a server with the role: guidon cluster status lists the servers and their roles.",
		strings.Join(needs, " or "), strings.Join(s.names, ", ")).After(retryAfter)
}

// MapError returns a function that explains an error of a write to the database on a
// server that only reads it, as by a request of the admin address. It passes other
// errors to next. PostgreSQL refuses a write in a transaction that only reads before it
// checks the rights, so a missing right is that to read a table, which its error names.
func (s Set) MapError(next func(error) error) func(error) error {
	if !s.DecideOnly() {
		return next
	}
	return func(err error) error {
		if e, ok := errors.AsType[sqlError](err); ok && e.SQLState() == readOnlyTransaction {
			return fault.New(fault.Unavailable, CodeMissing, "This server only reads the database, because it has the role decide alone. Send the request to a server with the role manage: guidon cluster status lists the servers and their roles.").
				After(retryAfter).Because(err)
		}
		return next(err)
	}
}

// sqlError is an error of PostgreSQL.
type sqlError interface {
	error
	SQLState() string
}

// readOnlyTransaction is a code of PostgreSQL.
const readOnlyTransaction = "25006"

// Watches reports whether a part of readiness concerns the server.
func (s Set) Watches(part string) bool {
	switch part {
	case "journal":
		return s.Has(Capture, Manage, Process)
	case "ingestion":
		return s.Has(Process)
	}
	return true
}
