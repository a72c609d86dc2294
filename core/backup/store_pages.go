package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"

	_ "modernc.org/sqlite" // the driver
)

// pageSnapshot reads the pages of a SQLite file within one read transaction. Other
// connections go on to write: their commits stay in the write-ahead log until the
// transaction ends, and cannot be seen. It is for one goroutine.
//
// The backup API of SQLite starts again at each commit of another process and so
// never ends beside a busy server; VACUUM INTO rewrites each b-tree, for several
// times the CPU, and its speed cannot be limited. The virtual table sqlite_dbpage
// returns the pages as they are, from the log or the file.
type pageSnapshot struct {
	db        *sql.DB
	tx        *sql.Tx
	pageBytes int
	pages     int
}

// openPages begins the read transaction on an existing file in WAL mode.
func openPages(ctx context.Context, path string) (_ *pageSnapshot, err error) {
	u := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{
		"mode": {"rw"}, "_pragma": {"busy_timeout(5000)", "query_only(1)", "cache_size(-1024)"},
	}.Encode()}
	s := &pageSnapshot{}
	if s.db, err = sql.Open("sqlite", u.String()); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close()
			err = fmt.Errorf("read %s: %w", path, err)
		}
	}()
	s.db.SetMaxOpenConns(1)
	if s.tx, err = s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
		return nil, err
	}
	// The first read fixes the snapshot.
	if err = s.tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(new(int)); err != nil {
		return nil, err
	}
	if err = s.tx.QueryRowContext(ctx, "PRAGMA page_size").Scan(&s.pageBytes); err != nil {
		return nil, err
	}
	return s, s.tx.QueryRowContext(ctx, "PRAGMA page_count").Scan(&s.pages)
}

// bytes is the size of the file in the snapshot.
func (s *pageSnapshot) bytes() int64 { return int64(s.pages) * int64(s.pageBytes) }

var errPages = errors.New("SQLite returned other pages than the file has")

// copyTo writes all pages in order: the content of a SQLite file.
func (s *pageSnapshot) copyTo(ctx context.Context, w io.Writer) error {
	rows, err := s.tx.QueryContext(ctx, "SELECT pgno, data FROM sqlite_dbpage") // a condition on pgno reads all pages, too
	if err != nil {
		return fmt.Errorf("copy pages: %w", err)
	}
	defer func() { _ = rows.Close() }()
	next := 1
	for ; rows.Next(); next++ {
		var number int
		var data sql.RawBytes
		if err := rows.Scan(&number, &data); err != nil {
			return fmt.Errorf("copy page %d: %w", next, err)
		}
		if number != next || len(data) != s.pageBytes {
			return errPages
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("copy page %d: %w", next, err)
	}
	if next != s.pages+1 {
		return errPages
	}
	return nil
}

// Close ends the read transaction.
func (s *pageSnapshot) Close() {
	if s.tx != nil {
		_ = s.tx.Rollback() // nothing was written
	}
	_ = s.db.Close()
}
