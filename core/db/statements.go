package db

import (
	"context"
	"database/sql/driver"
	"hash/maphash"
	"strings"
	"time"
)

// maxStatements bounds the prepared statements that a connection keeps.
const maxStatements = 48

// maxKeptText bounds the text of a statement that is kept, in bytes.
const maxKeptText = 4 << 10

// maxRecent is how many texts without arguments a connection remembers.
const maxRecent = 32

// statements keeps the prepared statements of one connection, because SQLite needs
// longer to parse most statements of the server than to run them. A statement in use
// is not in it. Like the connection, it is for one goroutine at a time.
//
// A text with arguments is kept at its first use. A text without arguments may be
// one of bun's, which holds its values: it is kept when it comes again soon.
type statements struct {
	idle   []*watchedStmt // the least recently used first
	seed   maphash.Seed
	recent [maxRecent]uint64 // hashes of texts without arguments
	next   int               // of recent
}

func newStatements() *statements { return &statements{seed: maphash.MakeSeed()} }

// isPlain reports whether a statement does the same at each execution. A pragma may
// take effect when it is prepared.
func isPlain(query string) bool {
	if len(query) > maxKeptText {
		return false
	}
	query = strings.TrimLeft(query, " \t\n")
	if len(query) < 6 {
		return false
	}
	switch strings.ToUpper(query[:6]) {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "REPLAC":
		return true
	}
	return false
}

// take removes the statement with that text from the idle ones. It returns nil if
// there is none.
func (s *statements) take(query string) *watchedStmt {
	for i := len(s.idle) - 1; i >= 0; i-- {
		if st := s.idle[i]; st.query == query {
			s.idle = append(s.idle[:i], s.idle[i+1:]...)
			return st
		}
	}
	return nil
}

// put keeps a statement that is not in use any more. It closes the least recently
// used one if there are too many.
func (s *statements) put(st *watchedStmt) error {
	var err error
	if len(s.idle) >= maxStatements {
		err = s.idle[0].sqliteStmt.Close()
		s.idle = append(s.idle[:0], s.idle[1:]...)
	}
	s.idle = append(s.idle, st)
	return err
}

// closeAll closes the idle statements and keeps no further ones.
func (s *statements) closeAll() {
	for _, st := range s.idle {
		_ = st.sqliteStmt.Close() // the connection is closed next
	}
	s.idle = nil
}

// keeps reports whether the statement of an execution is worth keeping.
func (s *statements) keeps(query string, args int) bool {
	if !isPlain(query) {
		return false
	}
	if args > 0 {
		return true
	}
	h := maphash.String(s.seed, query)
	for _, r := range s.recent {
		if r == h {
			return true
		}
	}
	s.recent[s.next] = h
	s.next = (s.next + 1) % maxRecent
	return false
}

// statement returns the prepared statement of an execution, nil if the text shall
// run without one that is kept.
func (c *watchedConn) statement(ctx context.Context, query string, args int) (*watchedStmt, error) {
	if !c.statements.keeps(query, args) {
		return nil, nil
	}
	return c.prepare(ctx, query)
}

func (c *watchedConn) prepare(ctx context.Context, query string) (*watchedStmt, error) {
	if st := c.statements.take(query); st != nil {
		return st, nil
	}
	st, err := c.sqliteConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, c.watch.seen(err)
	}
	return &watchedStmt{sqliteStmt: st.(sqliteStmt), conn: c, query: query, plain: isPlain(query)}, nil
}

// watched returns ctx for a statement. To watch a context costs SQLite's driver a
// goroutine for each statement. A statement with arguments of the connection that
// writes is short: it reads or changes rows by their keys; ctx is checked before it.
func (c *watchedConn) watched(ctx context.Context, args int) (context.Context, error) {
	if !c.writes || args == 0 {
		return ctx, nil
	}
	return context.WithoutCancel(ctx), ctx.Err()
}

// watchedStmt is a prepared statement of a connection.
type watchedStmt struct {
	sqliteStmt

	conn   *watchedConn
	query  string
	plain  bool
	failed bool // an execution failed: the statement is not kept
}

// release keeps the statement for the next execution of its text, or closes it.
func (s *watchedStmt) release() error {
	if s.plain && !s.failed && !s.conn.closed {
		return s.conn.statements.put(s)
	}
	return s.sqliteStmt.Close()
}

// Close ends the use of the statement.
func (s *watchedStmt) Close() error { return s.release() }

// ExecContext runs the statement.
func (s *watchedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	ctx, err := s.conn.watched(ctx, len(args))
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	r, err := s.sqliteStmt.ExecContext(ctx, args)
	s.conn.times.observe(kindExec, begin)
	s.failed = s.failed || err != nil
	return r, s.conn.watch.seen(err)
}

// QueryContext runs the query.
func (s *watchedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	ctx, err := s.conn.watched(ctx, len(args))
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	r, err := s.sqliteStmt.QueryContext(ctx, args)
	s.failed = s.failed || err != nil
	return s.conn.rows(r, err, begin)
}

// keptRows are the rows of a statement that is kept at their end.
type keptRows struct {
	*watchedRows

	stmt *watchedStmt
}

// Close ends the query.
func (r *keptRows) Close() error {
	err := r.watchedRows.Close()
	if r.stmt == nil {
		return err
	}
	r.stmt.failed = r.stmt.failed || err != nil || r.failed
	st := r.stmt
	r.stmt = nil
	if e := st.release(); err == nil {
		err = e
	}
	return err
}
