// Package cursors stores the positions of the readers of a shared log in the database.
//
// A cursor is a row, found by log, partition and reader. It has the token of the lease
// under which its partition is read. Register with a higher token takes all cursors of
// the partition over: it waits for transactions that hold their rows, and from then on a
// commit with a lower token is a Conflict. So a node that was stopped and continues after
// another node took its partition cannot move a cursor.
//
// Commit joins the transaction in its context, if there is one: then the cursor moves
// together with what was written, or not at all.
//
// The package does not read the log. Its caller checks that a position is not beyond the
// newest record.
package cursors

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// Key finds a cursor.
type Key struct {
	Log       string // Attach has recorded it
	Partition int
	Reader    string
}

// Cursor is the position of a reader of a partition, under the lease with Token.
type Cursor struct {
	Partition int
	Reader    string
	Token     int64
	Position  journal.Position
}

// The mistakes of a caller, in the kinds of journal.Journal.
var (
	errNoReader   = fault.New(fault.NotFound, "reader_not_found", "No reader of this name is registered.")
	errBackwards  = fault.New(fault.Conflict, "cursor_backwards", "A cursor never moves backwards.")
	errToken      = fault.New(fault.Conflict, "lease_lost", "Another node has taken the partition over.")
	errReaderName = fault.Field("reader", "reader_name", "A reader needs a name of at most 200 bytes.")
	errTooLarge   = fault.Field("seq", "cursor_ahead", "A cursor cannot be beyond the newest record.")

	errUnavailable = fault.New(fault.Unavailable, "cursors_unavailable",
		"The cursors of the log cannot be reached right now.").After(2 * time.Second)
)

// Store has the cursors of a database. Its methods may be called from many goroutines at
// once. A failure of the database is Unavailable.
type Store struct {
	store   store
	recent  recent
	skipped skipped
}

// New returns the cursors in d.
func New(d *db.DB) *Store { return &Store{store: store{d}} }

// Attach records that the nodes of this database use the log id with so many partitions.
// It fails if they use another log, or this one with another number of partitions: the
// cursors would point into other records, or events of one person would be in two
// partitions. replace takes another log instead, if it is set and returns nil; it is called
// in the same transaction. The cursors of the old log stay.
func (s *Store) Attach(ctx context.Context, id string, partitions int, replace func(ctx context.Context) error) error {
	return s.store.db.Tx(ctx, func(ctx context.Context) error {
		found, err := s.store.attached(ctx, logRow{ID: id, Partitions: partitions}, false)
		if err == nil && replace != nil && (found.ID != id || found.Partitions != partitions) {
			if err := replace(ctx); err != nil {
				return err
			}
			found, err = s.store.attached(ctx, logRow{ID: id, Partitions: partitions}, true)
		}
		switch {
		case err != nil:
			return unavailable(err)
		case found.ID != id:
			return fmt.Errorf("this database belongs to the log %s, not to %s", found.ID, id)
		case found.Partitions != partitions:
			return fmt.Errorf("the log %s has %d partitions now and had %d when this database began to use it; the partition of an event would change", id, partitions, found.Partitions)
		}
		return nil
	})
}

// identity is the key of the row that has the identity of the database. No log has this
// id.
var identity = Key{Log: "database", Reader: "identity"}

// Identity returns a number above 0 that this database alone has. The first call creates
// it.
func (s *Store) Identity(ctx context.Context) (int64, error) {
	row, found, err := s.store.find(ctx, identity)
	if err == nil && !found {
		if err = s.store.insert(ctx, newRow(identity, 0, journal.Position{Seq: 1 + rand.Uint64N(math.MaxInt64)})); err == nil {
			row, found, err = s.store.find(ctx, identity)
		}
	}
	if err == nil && !found {
		err = errors.New("the identity of the database was removed")
	}
	return row.Seq, unavailable(err)
}

// Place identifies the location of the database: the identifier that PostgreSQL gave its
// cluster when that was made, and the number of the database in it. A restored dump and a
// database made from a template have another place; a promoted standby and a copy of all
// files have the same. It is empty on SQLite, and if the user may not read the identifier.
func (s *Store) Place(ctx context.Context) (string, error) {
	if !s.store.db.Postgres() {
		return "", nil
	}
	place, err := s.store.place(ctx)
	return place, unavailable(err)
}

// Register returns the position of the cursor, and creates it at start if it is new. It
// gives all cursors of the partition the token. A higher token in one of them is a
// Conflict.
func (s *Store) Register(ctx context.Context, k Key, token int64, start journal.Position) (p journal.Position, err error) {
	defer s.recent.forget()
	if k.Reader == "" || len(k.Reader) > 200 {
		return p, errReaderName
	}
	err = s.store.db.Tx(ctx, func(ctx context.Context) error {
		if err := s.store.raiseTokens(ctx, k, token); err != nil {
			return unavailable(err)
		}
		highest, err := s.store.highestToken(ctx, k)
		if err != nil {
			return unavailable(err)
		}
		if highest > token {
			return errToken
		}
		if err := s.store.insert(ctx, newRow(k, token, start)); err != nil {
			return unavailable(err)
		}
		row, found, err := s.store.find(ctx, k)
		if err == nil && !found {
			err = errors.New("the cursor was removed meanwhile")
		}
		p = row.position()
		return unavailable(err)
	})
	if fault.From(err) == nil {
		err = unavailable(err)
	}
	return p, err
}

// RegisterAll creates the cursors of a reader in the partitions of a log that have none,
// without a lease. The bounds are those of all partitions; they are used only if a cursor
// is missing.
//
// While no partition was ever read under a lease, a reader begins at the oldest record
// for every value of from: nodes that only append may have accepted events before the first node
// that reads was started.
func RegisterAll[B Bounds](ctx context.Context, s *Store, log, reader string, partitions []B, from journal.Start) error {
	if reader == "" || len(reader) > 200 {
		return errReaderName
	}
	all, err := s.List(ctx, log)
	if err != nil {
		return err
	}
	has := make([]bool, len(partitions))
	read := false
	for _, c := range all {
		read = read || c.Token > 0
		if c.Reader == reader && c.Partition < len(has) {
			has[c.Partition] = true
		}
	}
	if !slices.Contains(has, false) {
		return nil
	}
	if err := partitions[0].Refresh(ctx); err != nil {
		return err
	}
	if !read {
		from = journal.Begin
	}
	var rows []*cursorRow
	for n, b := range partitions {
		if !has[n] {
			rows = append(rows, newRow(Key{log, n, reader}, 0, position(b, from)))
		}
	}
	defer s.recent.forget()
	return unavailable(s.store.insert(ctx, rows...))
}

// Commit moves the cursor to p. An earlier position, a smaller Count or a lower token
// than the cursor has is a Conflict; the same position is fine.
func (s *Store) Commit(ctx context.Context, k Key, token int64, p journal.Position) error {
	if p.Seq > math.MaxInt64 || p.Count > math.MaxInt64 {
		return errTooLarge
	}
	moved, err := s.store.move(ctx, newRow(k, token, p))
	if moved {
		s.recent.move(k, token, p)
	}
	if err != nil || moved {
		return unavailable(err)
	}
	row, found, err := s.store.find(ctx, k)
	switch {
	case err != nil:
		return unavailable(err)
	case !found:
		return errNoReader
	case row.Token > token:
		return errToken
	}
	return errBackwards
}

// Unregister removes the cursor. A cursor that does not exist is no error; one with a
// higher token is a Conflict.
func (s *Store) Unregister(ctx context.Context, k Key, token int64) error {
	defer s.recent.forget()
	if err := s.store.remove(ctx, k, token); err != nil {
		return unavailable(err)
	}
	_, found, err := s.store.find(ctx, k)
	if err == nil && found {
		return errToken
	}
	return unavailable(err)
}

// List returns the cursors of a log by partition and reader.
func (s *Store) List(ctx context.Context, log string) ([]Cursor, error) {
	rows, err := s.store.list(ctx, log)
	if err != nil {
		return nil, unavailable(err)
	}
	out := make([]Cursor, len(rows))
	for i, r := range rows {
		out[i] = Cursor{Partition: r.Partition, Reader: r.Reader, Token: r.Token, Position: r.position()}
	}
	return out, nil
}

// unavailable returns the fault of a statement that failed. The error of an ended
// context, and nil, return as they are.
func unavailable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return errUnavailable.Because(err)
}
