// Package format is the layout of a journal's file: a SQLite database whose table
// blocks holds one row for each group of records that was synced together.
//
// Each row has a checksum over all of its columns, so that a record is never
// returned changed or under a wrong number. SQLite itself has no checksums: a File
// reads blocks with a connection of its own and finds what is readable around
// damaged rows and malformed pages.
//
// The package opens files with the driver "sqlite" of database/sql, which the program
// imports: the server with core/db/sqlite, tests with modernc.org/sqlite. So packages that
// only know the types of a journal do not link SQLite.
package format

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// FileName is the name of the file in the directory of a journal.
const FileName = "journal.db"

// BlocksFromSQL finds the block that holds record ?1, or the first one after it,
// and all that follow, for Row.Scan.
const BlocksFromSQL = "SELECT " + columns + ` FROM blocks
	WHERE seq >= coalesce((SELECT max(seq) FROM blocks WHERE seq <= ?1), 0)
	ORDER BY seq`

const columns = "seq, n, at, pos, size, form, crc, data"

// SingleFromSQL finds the block that begins with record ?1 if it holds no other one:
// its stamp and its place, without its data.
const SingleFromSQL = "SELECT at, pos FROM blocks WHERE seq = ?1 AND n = 1"

// ErrMissing is the error of records that the file does not hold.
var ErrMissing = errors.New("the records are missing")

// ErrRow is the error of a row with a value that no journal has.
var ErrRow = errors.New("a row has values that no journal has")

// ScanError returns the error of a scan. That of a value of another type is ErrRow.
func ScanError(err error) error {
	if err != nil && strings.HasPrefix(err.Error(), "sql: Scan error") { // database/sql has no type for it
		return fmt.Errorf("%w: %w", ErrRow, err)
	}
	return err
}

// IsDamage reports whether err means that data in the file is damaged, as opposed
// to a file that cannot be read now.
func IsDamage(err error) bool {
	return errors.Is(err, ErrMissing) || errors.Is(err, ErrChecksum) || errors.Is(err, ErrUnpack) ||
		errors.Is(err, ErrBlock) || errors.Is(err, ErrRow) || IsMalformed(err)
}

// SQLite's primary result codes.
const (
	sqliteIOError = 10
	sqliteCorrupt = 11
	sqliteFull    = 13
	sqliteNotDB   = 26
)

// IsMalformed reports whether SQLite found the structure of a file damaged.
func IsMalformed(err error) bool {
	code, ok := sqliteCode(err)
	return ok && (code == sqliteCorrupt || code == sqliteNotDB)
}

// IsFull reports whether SQLite found no space left on the disk.
func IsFull(err error) bool {
	code, ok := sqliteCode(err)
	return ok && code == sqliteFull
}

// IsDiskFailure reports whether the disk failed under SQLite, or SQLite did not even
// report why it failed.
func IsDiskFailure(err error) bool {
	code, ok := sqliteCode(err)
	return !ok || code == sqliteIOError
}

// sqliteError is what the errors of the driver implement.
type sqliteError interface {
	error
	Code() int // the extended result code
}

// sqliteCode returns the primary result code of an error of SQLite.
func sqliteCode(err error) (code int, ok bool) {
	e, ok := errors.AsType[sqliteError](err)
	if !ok {
		return 0, false
	}
	return e.Code() & 0xff, true
}

// Row is a row of blocks as it is stored. Its data is valid until the next row.
type Row struct {
	Seq, At, Pos, Size, CRC int64
	N, Form                 int
	Stored                  sql.RawBytes
	header                  [headerBytes]byte
}

// Scan reads the columns of BlocksFromSQL.
func (r *Row) Scan(rows *sql.Rows) error {
	err := rows.Scan(&r.Seq, &r.N, &r.At, &r.Pos, &r.Size, &r.Form, &r.CRC, &r.Stored)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRow, err)
	}
	return nil
}

// Verify returns the block of the row, or an error that satisfies IsDamage.
func (r *Row) Verify() (b Block, err error) {
	b = Block{Seq: uint64(r.Seq), N: r.N, At: r.At, Pos: r.Pos}
	fillHeader(&r.header, b, r.Size)
	if b.Data, err = Unpack(r.Form, uint32(r.CRC), r.header[:], r.Stored); err == nil {
		err = b.Check()
	}
	if err != nil {
		return Block{}, err
	}
	return b, nil
}

// Damage is a range of records that cannot be read.
type Damage struct {
	First, Last uint64
	At          time.Time // of the first damaged block, zero when it is unknown
	Bytes       int       // of stored data that was found
	// Saved and Raw hold that data, at most maxSaved: blocks whose table of
	// records is intact, and other data. Neither is verified.
	Saved []Block
	Raw   []byte
	Cause error

	saved int
}

// maxSaved bounds the data that a Damage keeps.
const maxSaved = 256 << 10

// save keeps what can be read of a damaged row.
func (d *Damage) save(r *Row) {
	d.Bytes += len(r.Stored)
	if d.At.IsZero() && r.At > 0 {
		d.At = time.UnixMicro(r.At)
	}
	left := maxSaved - d.saved
	data, err := Decompress(r.Form, r.Stored)
	b := Block{Seq: uint64(r.Seq), N: r.N, At: r.At, Data: data}
	if err == nil && b.Check() == nil && len(data) <= left {
		d.Saved = append(d.Saved, b)
		d.saved += len(data)
		return
	}
	part := r.Stored[:max(0, min(len(r.Stored), left))]
	d.Raw = append(d.Raw, part...)
	d.saved += len(part)
}
