package format

import (
	"context"
	"database/sql"
)

// readCacheKiB is the cache of the connection of a File.
const readCacheKiB = 256

// File reads the blocks of a journal's file with a connection of its own, whose
// cache holds nothing. It is for one goroutine.
type File struct{ DB *sql.DB }

// OpenFile opens a file for reading.
func OpenFile(path string) (*File, error) {
	db, err := sql.Open("sqlite", DSN(path, readCacheKiB, "query_only(1)"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &File{db}, nil
}

// Close closes the file.
func (f *File) Close() error { return f.DB.Close() }

// FindDamage returns the range of damaged records behind after: up to the next
// block that is readable, at most last. It returns nil if the record behind after
// is readable. An error means that the file cannot be read now.
func (f *File) FindDamage(ctx context.Context, after, last uint64, cause error) (*Damage, error) {
	d := &Damage{First: after + 1, Last: last, Cause: cause}
	failed := after // the highest number from which reading fails
	for x := after + 1; x <= last; x = nextProbe(x, d.First) {
		b, found, err := f.firstReadable(ctx, x, last, d)
		switch {
		case err != nil && !IsMalformed(err):
			return nil, err
		case err != nil:
			d.Cause, failed = err, x
			continue
		case !found:
			return d, nil
		case b.Seq <= d.First:
			return nil, nil
		}
		b, err = f.bisect(ctx, failed, x, last, b)
		d.Last = b.Seq - 1
		return d, err
	}
	return d, nil
}

// nextProbe returns the number at which to search next. Pages hold blocks of
// consecutive numbers: the steps are single ones at first, then a 64th of the
// distance, because a page near the root covers millions of records.
func nextProbe(x, first uint64) uint64 {
	const single = 4096
	if d := x - first; d > single {
		return x + d/64
	}
	return x + 1
}

// bisect returns the first readable block behind failed, given that one was found
// from x on.
func (f *File) bisect(ctx context.Context, failed, x, last uint64, found Block) (Block, error) {
	for failed+1 < x {
		middle := failed + (x-failed)/2
		b, ok, err := f.firstReadable(ctx, middle, last, nil)
		switch {
		case err != nil && !IsMalformed(err):
			return found, err
		case err != nil || !ok:
			failed = middle
		default:
			x, found = middle, b
		}
	}
	return found, nil
}

// firstReadable returns the first intact block that holds record seq or a later
// one, up to last. It saves what the damaged blocks before it hold in d, unless d
// is nil.
func (f *File) firstReadable(ctx context.Context, seq, last uint64, d *Damage) (b Block, found bool, err error) {
	rows, err := f.DB.QueryContext(ctx, BlocksFromSQL, int64(seq))
	if err != nil {
		return Block{}, false, err
	}
	defer func() { _ = rows.Close() }()
	for r := (Row{}); rows.Next(); {
		err := r.Scan(rows)
		if err == nil {
			b, err = r.Verify()
		}
		switch {
		case err == nil && b.Last() < seq:
		case err == nil && b.Seq <= last:
			return b, true, nil
		case err == nil:
			return Block{}, false, nil
		case d != nil:
			d.Cause = err
			d.save(&r)
		}
	}
	return Block{}, false, rows.Err()
}

// Walk calls good with each intact block of the records behind after, up to last,
// in order, and bad with each damaged range between them. A failure of either ends
// it.
func (f *File) Walk(ctx context.Context, after, last uint64, good func(Block) error, bad func(*Damage) error) error {
	for after < last {
		err := f.walkGood(ctx, &after, last, good)
		if err != nil && !IsDamage(err) {
			return err
		}
		if after >= last {
			return nil
		}
		if err == nil {
			err = ErrMissing
		}
		d, err := f.FindDamage(ctx, after, last, err)
		if err != nil {
			return err
		}
		if d == nil {
			continue
		}
		if err := bad(d); err != nil {
			return err
		}
		after = d.Last
	}
	return nil
}

// walkGood calls good with blocks until one is missing or damaged.
func (f *File) walkGood(ctx context.Context, after *uint64, last uint64, good func(Block) error) error {
	rows, err := f.DB.QueryContext(ctx, BlocksFromSQL, int64(*after+1))
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for r := (Row{}); rows.Next(); {
		if err := r.Scan(rows); err != nil {
			return err
		}
		b, err := r.Verify()
		switch {
		case err != nil:
			return err
		case b.Last() <= *after:
			continue
		case b.Seq > *after+1 || b.Seq > last:
			return nil
		}
		if err := good(b); err != nil {
			return err
		}
		*after = b.Last()
	}
	return rows.Err()
}

// Newest returns the newest block that is intact, and the last record that the
// damaged rows behind it claim to hold. found is false if no block is intact.
func Newest(ctx context.Context, db *sql.DB) (b Block, claimed uint64, found bool, err error) {
	const maxAhead = 1 << 20 // a claim beyond that is damaged itself
	rows, err := db.QueryContext(ctx, "SELECT "+columns+" FROM blocks ORDER BY seq DESC")
	if err != nil {
		return b, 0, false, err
	}
	defer func() { _ = rows.Close() }()
	var claims []uint64
	for r := (Row{}); rows.Next(); {
		err := r.Scan(rows)
		if err == nil {
			b, err = r.Verify()
		}
		if err != nil {
			claims = append(claims, uint64(r.Seq)+uint64(max(r.N, 1))-1)
			continue
		}
		claimed = b.Last()
		for _, c := range claims {
			if c < b.Last()+maxAhead {
				claimed = max(claimed, c)
			}
		}
		return b, claimed, true, nil
	}
	return b, 0, false, rows.Err()
}
