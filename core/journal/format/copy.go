package format

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// Reader is a row of readers: the cursor of one reader.
type Reader struct {
	Name                       string
	Seq, Index, Count, Dropped int64
}

// Range is a range of records that cannot be read.
type Range struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	Bytes int    `json:"bytes"` // stored data found in it
	Cause string `json:"cause"`
}

// Contents is what a journal's file holds.
type Contents struct {
	ID      string   `json:"id"`
	First   uint64   `json:"first"` // the oldest record; Last+1 when there is none
	Last    uint64   `json:"last"`  // the newest record ever appended, as far as it is known
	Blocks  int      `json:"blocks"`
	Records uint64   `json:"records"` // that can be read
	Bytes   int64    `json:"bytes"`   // their data
	Readers []Reader `json:"-"`
	Damaged []Range  `json:"damaged"`
	// Problems lists what else cannot be read: tables, or the whole file.
	Problems []string `json:"problems"`
}

// Lost is the number of records in damaged ranges.
func (c *Contents) Lost() (n uint64) {
	for _, r := range c.Damaged {
		n += r.Last - r.First + 1
	}
	return n
}

// Survey reads all of a file. last is the newest durable record, if it is known
// from elsewhere, else 0. It calls good, unless it is nil, with each intact block.
// A damaged file is no error.
func Survey(ctx context.Context, path string, last uint64, good func(Block) error) (*Contents, error) {
	return survey(ctx, path, Copying{Last: last}, good)
}

func survey(ctx context.Context, path string, o Copying, good func(Block) error) (*Contents, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	c := &Contents{Last: o.Last, Damaged: []Range{}, Problems: []string{}}
	first, err := f.outline(ctx, c)
	if err != nil {
		return nil, err
	}
	if o.Exact {
		c.Last = o.Last
	}
	c.First = min(max(first, o.First), c.Last+1)
	err = f.Walk(ctx, c.First-1, c.Last, func(b Block) error {
		c.Blocks++
		c.Records += uint64(b.N)
		c.Bytes += int64(b.Payload())
		if good == nil {
			return nil
		}
		return good(b)
	}, func(d *Damage) error {
		c.Damaged = append(c.Damaged, Range{d.First, d.Last, d.Bytes, d.Cause.Error()})
		if o.Damaged != nil {
			o.Damaged(d)
		}
		return nil
	})
	return c, err
}

// outline reads everything but the blocks, and returns the oldest record that must
// be there.
func (f *File) outline(ctx context.Context, c *Contents) (first uint64, err error) {
	tolerate := func(what string, err error) error {
		if err == nil || !IsDamage(err) && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		c.Problems = append(c.Problems, fmt.Sprintf("%s: %v", what, err))
		return nil
	}
	next := int64(1)
	if err := tolerate("head", ScanError(f.DB.QueryRowContext(ctx, "SELECT id, next_seq FROM head").Scan(&c.ID, &next))); err != nil {
		return 0, err
	}
	if err := tolerate("readers", f.readReaders(ctx, c)); err != nil {
		return 0, err
	}
	_, claimed, _, err := Newest(ctx, f.DB)
	if err := tolerate("blocks", err); err != nil {
		return 0, err
	}
	c.Last = max(c.Last, claimed, uint64(next)-1)
	var oldest uint64
	err = f.DB.QueryRowContext(ctx, "SELECT seq FROM blocks ORDER BY seq LIMIT 1").Scan(&oldest)
	switch {
	case err == nil:
		first = oldest
	case errors.Is(err, sql.ErrNoRows):
		first = c.Last + 1
	default:
		first = uint64(next)
	}
	for _, r := range c.Readers {
		if r.Dropped == 0 {
			first = min(first, uint64(r.Seq)+1)
		}
	}
	return first, nil
}

func (f *File) readReaders(ctx context.Context, c *Contents) error {
	rows, err := f.DB.QueryContext(ctx, "SELECT name, seq, idx, count, dropped FROM readers")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var r Reader
		if err := rows.Scan(&r.Name, &r.Seq, &r.Index, &r.Count, &r.Dropped); err != nil {
			return fmt.Errorf("%w: %w", ErrRow, err)
		}
		c.Readers = append(c.Readers, r)
	}
	return rows.Err()
}

// Copying holds the inputs of Copy besides the file.
type Copying struct {
	ID      string        // of the journal, if the file does not have it
	First   uint64        // the oldest record that is kept, 0 if it is not known
	Last    uint64        // the newest durable record, 0 if it is not known
	Exact   bool          // leaves out records behind Last, which were never acknowledged
	End     int64         // bytes of data ever appended, if more are known than the file holds
	Readers []Reader      // replaces the cursors of the file unless it is nil
	Damaged func(*Damage) // is called for each damaged range, unless it is nil
}

// Copy writes everything of a file that can be read into a new file at to, which
// must not exist. After an error there is no file at to.
func Copy(ctx context.Context, from, to string, o Copying) (c *Contents, err error) {
	defer func() {
		if err != nil {
			for _, suffix := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(to + suffix)
			}
		}
	}()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Close(), Prepare(ctx, to)); err != nil {
		return nil, err
	}
	// The file counts when it is complete: its pages are written once, and synced at the end.
	db, err := sql.Open("sqlite", DSN(to, copyCacheKiB, "journal_mode(OFF)", "synchronous(OFF)"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	insert, err := tx.PrepareContext(ctx, InsertSQL)
	if err != nil {
		return nil, err
	}
	defer func() { _ = insert.Close() }()
	pos, packer := o.End, Packer{}
	c, err = survey(ctx, from, o, func(b Block) error {
		pos = max(pos, b.Pos+int64(b.Payload()))
		return insertBlock(ctx, insert, &packer, b)
	})
	if err != nil {
		return nil, err
	}
	if c.ID == "" {
		c.ID = o.ID
	}
	if c.ID == "" {
		c.ID = rand.Text()
	}
	readers := o.Readers
	if readers == nil {
		readers = c.Readers
	}
	if _, err := tx.ExecContext(ctx, "UPDATE head SET id = ?, next_seq = ?, next_pos = ?", c.ID, int64(c.Last+1), pos); err != nil {
		return nil, err
	}
	for _, r := range readers {
		if _, err := tx.ExecContext(ctx, "INSERT INTO readers VALUES (?, ?, ?, ?, ?)", r.Name, r.Seq, r.Index, r.Count, r.Dropped); err != nil {
			return nil, err
		}
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return c, finishFile(ctx, to)
}

// copyCacheKiB is the cache of the connection that writes a copy.
const copyCacheKiB = 4 << 10

// finishFile switches a complete file to the write-ahead log and syncs it.
func finishFile(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", DSN(path, readCacheKiB))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// InsertSQL inserts a block.
const InsertSQL = "INSERT INTO blocks (" + columns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

func insertBlock(ctx context.Context, insert *sql.Stmt, p *Packer, b Block) error {
	form, data := p.Pack(b.Data)
	form, sum := p.Seal(b, form, data)
	_, err := insert.ExecContext(ctx, int64(b.Seq), b.N, b.At, b.Pos, b.Payload(), form, int64(sum), data)
	return err
}
