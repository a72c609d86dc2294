package dictionaries

import (
	"context"

	"github.com/guidonhq/guidon/core/db/rowcodec"
)

// Encoder compresses batches of rows with the current dictionaries of their projects.
// It uses its memory again. The zero value is ready; one goroutine uses it at a time.
type Encoder struct {
	buffer  rowcodec.Buffer
	columns rowcodec.Columns
	out     []byte // all rows of the batch
	ends    []int  // of the rows in out
	plain   map[int64]int

	project    int64
	dictionary *rowcodec.Dictionary
}

// Begin starts a batch.
func (e *Encoder) Begin() {
	e.out, e.ends, e.plain = e.out[:0], e.ends[:0], nil
	e.project, e.dictionary = 0, nil
}

// Add adds a row to the batch. The distinct id and the URL are those of its columns.
func (e *Encoder) Add(ctx context.Context, s *Store, projectID int64, properties []byte, distinctID, url string) (err error) {
	if projectID != e.project || len(e.ends) == 0 {
		if e.dictionary, err = s.Current(ctx, projectID); err != nil {
			return err
		}
		e.project = projectID
	}
	if e.dictionary != nil {
		e.columns.DistinctID = append(e.columns.DistinctID[:0], distinctID...)
		e.columns.URL = append(e.columns.URL[:0], url...)
		e.out, _ = e.dictionary.Encode(e.out, properties, e.columns, &e.buffer)
	} else {
		if e.plain == nil {
			e.plain = map[int64]int{}
		}
		e.plain[projectID]++
	}
	e.ends = append(e.ends, len(e.out))
	return nil
}

// Row returns a row of the batch by its number, nil if it is not compressed. It must be
// called after the last Add; the memory is valid until Begin.
func (e *Encoder) Row(i int) []byte {
	start := 0
	if i > 0 {
		start = e.ends[i-1]
	}
	if start == e.ends[i] {
		return nil
	}
	return e.out[start:e.ends[i]:e.ends[i]]
}

// Plain returns how many rows of the batch had no dictionary, by project. The result is
// not changed later.
func (e *Encoder) Plain() map[int64]int { return e.plain }

// Decoder returns the properties of rows as text. It uses its memory again; one
// goroutine uses it at a time.
type Decoder struct {
	store  *Store
	buffer rowcodec.Buffer
	plain  []byte
	last   *rowcodec.Dictionary
}

// NewDecoder returns a Decoder for rows of any project.
func (s *Store) NewDecoder() *Decoder { return &Decoder{store: s} }

// Decode returns the text of the value of a column, which may be text already. The
// memory is valid until the next call. It fails with rowcodec.ErrDamaged or
// rowcodec.ErrDictionary if the value or its dictionary is damaged.
func (d *Decoder) Decode(ctx context.Context, stored, distinctID, url []byte) (plain []byte, err error) {
	if !rowcodec.IsCompressed(stored) {
		return stored, nil
	}
	id, err := rowcodec.DictionaryOf(stored)
	if err != nil {
		return nil, err
	}
	if d.last == nil || d.last.ID() != id {
		if d.last, err = d.store.get(ctx, id); err != nil {
			return nil, err
		}
	}
	d.plain, err = d.last.Decode(d.plain[:0], stored, rowcodec.Columns{DistinctID: distinctID, URL: url}, &d.buffer)
	return d.plain, err
}
