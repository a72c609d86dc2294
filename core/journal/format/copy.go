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
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	c := &Contents{Last: last, Damaged: []Range{}, Problems: []string{}}
	first, err := f.outline(ctx, c)
	if err != nil {
		return nil, err
	}
	c.First = first
	err = f.Walk(ctx, first-1, c.Last, func(b Block) error {
		c.Blocks++
		c.Records += uint64(b.N)
		c.Bytes += int64(b.Payload())
		if good == nil {
			return nil
		}
		return good(b)
	}, func(d *Damage) error {
		c.Damaged = append(c.Damaged, Range{d.First, d.Last, d.Bytes, d.Cause.Error()})
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
	if err := tolerate("head", f.DB.QueryRowContext(ctx, "SELECT id, next_seq FROM head").Scan(&c.ID, &next)); err != nil {
		return 0, err
	}
	if err := tolerate("readers", f.readReaders(ctx, c)); err != nil {
		return 0, err
	}
	_, claimed, found, err := Newest(ctx, f.DB)
	if err := tolerate("blocks", err); err != nil {
		return 0, err
	}
	c.Last = max(c.Last, claimed, uint64(next)-1)
	first = c.Last + 1
	if found {
		var oldest uint64
		err := f.DB.QueryRowContext(ctx, "SELECT seq FROM blocks ORDER BY seq LIMIT 1").Scan(&oldest)
		if first = oldest; err != nil {
			first = uint64(next)
		}
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
			return fmt.Errorf("%w: %w", ErrBlock, err)
		}
		c.Readers = append(c.Readers, r)
	}
	return rows.Err()
}

// Copy writes everything of a file that can be read into a new file at to, which
// must not exist. id names the journal if the file does not; last is as in Survey.
// readers replaces the cursors of the file unless it is nil. After an error there
// is no file at to.
func Copy(ctx context.Context, from, to, id string, last uint64, readers []Reader) (c *Contents, err error) {
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
	db, err := sql.Open("sqlite", DSN(to, readCacheKiB))
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
	pos, packer := int64(0), Packer{}
	c, err = Survey(ctx, from, last, func(b Block) error {
		pos = b.Pos + int64(b.Payload())
		return Insert(ctx, tx, &packer, b)
	})
	if err != nil {
		return nil, err
	}
	if c.ID == "" {
		c.ID = id
	}
	if c.ID == "" {
		c.ID = rand.Text()
	}
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
	_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return c, errors.Join(err, db.Close())
}

// InsertSQL inserts a block.
const InsertSQL = "INSERT INTO blocks (" + columns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

// Insert writes a block as a row.
func Insert(ctx context.Context, tx *sql.Tx, p *Packer, b Block) error {
	form, data := p.Pack(b.Data)
	form, sum := p.Seal(b, form, data)
	_, err := tx.ExecContext(ctx, InsertSQL, int64(b.Seq), b.N, b.At, b.Pos, b.Payload(), form, int64(sum), data)
	return err
}
