package format

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
)

const (
	schemaVersion = 2          // 2: checksums cover the whole row of a block
	applicationID = 0x4755494a // "GUIJ", what file(1) and the SQLite shell can show

	// PageBytes is the size of a page of new files: a small append writes at least one
	// (docs/decisions/0060). Files of former versions have pages of 16 KiB and keep them.
	PageBytes = 4096
)

// schema creates the tables. blocks holds the records, one row per block. head is
// one row that outlives the blocks, so that numbers are never reused. auto_vacuum
// must precede the first table.
var schema = []string{
	fmt.Sprintf("PRAGMA page_size = %d", PageBytes),
	"PRAGMA auto_vacuum = INCREMENTAL",
	"PRAGMA journal_mode = WAL",
	"BEGIN IMMEDIATE",
	`CREATE TABLE head (
		one      INTEGER PRIMARY KEY CHECK (one = 1),
		id       TEXT    NOT NULL, -- of this journal
		next_seq INTEGER NOT NULL, -- the next record's number is at least this
		next_pos INTEGER NOT NULL, -- as blocks.pos, for the next block
		probed   INTEGER NOT NULL  -- when writing was last tried after a failure
	)`,
	`CREATE TABLE blocks (
		seq  INTEGER PRIMARY KEY,  -- of the first record
		n    INTEGER NOT NULL,     -- records in this block
		at   INTEGER NOT NULL,     -- Unix microseconds
		pos  INTEGER NOT NULL,     -- bytes of record data before this block, ever
		size INTEGER NOT NULL,     -- bytes of record data in this block
		form INTEGER NOT NULL,     -- of data: 0 plain, 1 compressed with S2; + 2 when crc covers the row
		crc  INTEGER NOT NULL,     -- CRC-32C of (seq, n, at, pos, size and) data as it is here
		data BLOB    NOT NULL      -- n × uint32 end of record, then the records
	)`,
	`CREATE TABLE readers (
		name    TEXT    PRIMARY KEY,
		seq     INTEGER NOT NULL,
		idx     INTEGER NOT NULL,
		count   INTEGER NOT NULL,
		dropped INTEGER NOT NULL
	) WITHOUT ROWID`,
	fmt.Sprintf("PRAGMA application_id = %d", applicationID),
}

// DSN returns the data source name of the file. The wal type runs checkpoints, so
// SQLite's own are off.
func DSN(path string, cacheKiB int, more ...string) string {
	pragmas := append([]string{
		"busy_timeout(1000)", "journal_mode(WAL)", "synchronous(FULL)", "wal_autocheckpoint(0)",
		"secure_delete(0)", fmt.Sprintf("cache_size(-%d)", cacheKiB),
	}, more...)
	u := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": pragmas}.Encode()}
	return u.String()
}

// Prepare creates the tables of a new file. It refuses a file that is not a
// journal or that a newer version wrote.
func Prepare(ctx context.Context, path string) error {
	u := url.URL{Scheme: "file", Path: path}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	var version, application, tables int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&application); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
		return err
	}
	switch {
	case tables == 0:
		return createSchema(ctx, db)
	case application != applicationID:
		return fmt.Errorf("this is a SQLite file, but not a journal")
	case version > schemaVersion:
		return fmt.Errorf("written by a newer version (layout %d, this one knows %d)", version, schemaVersion)
	case version < schemaVersion:
		_, err = db.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", schemaVersion))
	}
	return err
}

func createSchema(ctx context.Context, db *sql.DB) error {
	for _, q := range schema {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	if _, err := db.ExecContext(ctx, "INSERT INTO head VALUES (1, ?, 1, 0, 0)", rand.Text()); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", schemaVersion)); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, "COMMIT")
	return err
}
