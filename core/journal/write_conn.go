package journal

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/guidonhq/guidon/core/journal/format"
)

// writeConn is the one connection that writes, with its prepared statements. Only
// the writer goroutine uses it. After any failure it is closed and replaced, so
// that no partial state survives.
type writeConn struct {
	conn   *sql.Conn
	packer format.Packer

	begin, commit, rollback *sql.Stmt
	insert                  *sql.Stmt
	remove, oldest, head    *sql.Stmt
	forget                  *sql.Stmt
	setReader, dropReader   *sql.Stmt
	probe, vacuum, free     *sql.Stmt
}

// uninterrupted is the context of statements: an interrupt by one caller would
// fail the whole group.
var uninterrupted = context.Background()

func openWriteConn(db *sql.DB) (*writeConn, error) {
	conn, err := db.Conn(uninterrupted)
	if err != nil {
		return nil, err
	}
	l := &writeConn{conn: conn}
	for _, p := range []struct {
		to  **sql.Stmt
		sql string
	}{
		{&l.begin, "BEGIN IMMEDIATE"},
		{&l.commit, "COMMIT"},
		{&l.rollback, "ROLLBACK"},
		{&l.insert, format.InsertSQL},
		{&l.remove, "DELETE FROM blocks WHERE seq <= ?1 AND seq + n - 1 <= ?1"},
		{&l.forget, "DELETE FROM blocks WHERE seq > ?"},
		{&l.oldest, "SELECT seq, at, pos FROM blocks ORDER BY seq LIMIT 1"},
		{&l.head, "UPDATE head SET next_seq = ?, next_pos = ?"},
		{&l.setReader, "REPLACE INTO readers (name, seq, idx, count, dropped) VALUES (?, ?, ?, ?, ?)"},
		{&l.dropReader, "DELETE FROM readers WHERE name = ?"},
		{&l.probe, "UPDATE head SET probed = ?"},
		{&l.vacuum, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", vacuumPages)},
		{&l.free, "PRAGMA freelist_count"},
	} {
		//nolint:sqlclosecheck // close does it
		if *p.to, err = conn.PrepareContext(uninterrupted, p.sql); err != nil {
			l.close()
			return nil, fmt.Errorf("prepare %q: %w", p.sql, err)
		}
	}
	return l, nil
}

func exec(s *sql.Stmt, args ...any) error {
	_, err := s.ExecContext(uninterrupted, args...)
	return err
}

func (l *writeConn) insertBlock(b format.Block) error {
	form, data := l.packer.Pack(b.Data)
	form, sum := l.packer.Seal(b, form, data)
	return exec(l.insert, int64(b.Seq), b.N, b.At, b.Pos, b.Payload(), form, int64(sum), data)
}

// freePages is the number of pages in the file that hold nothing.
func (l *writeConn) freePages() (n int64, err error) {
	err = l.free.QueryRowContext(uninterrupted).Scan(&n)
	return n, err
}

func (l *writeConn) close() {
	for _, s := range []*sql.Stmt{l.begin, l.commit, l.rollback, l.insert, l.remove, l.forget, l.oldest, l.head,
		l.setReader, l.dropReader, l.probe, l.vacuum, l.free} {
		if s != nil {
			_ = s.Close()
		}
	}
	_ = l.conn.Close()
}
