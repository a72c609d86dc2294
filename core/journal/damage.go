package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal/format"
)

// DamagedError is in the error chain of Read when the next records cannot be
// read: their checksum does not fit, a page of the file is malformed, or they
// are missing. The disk has lost them. Read has verified it with a connection of
// its own, and that the record after Last is readable or Last is the newest. A
// reader may report the range and continue after Last.
type DamagedError struct {
	First, Last uint64
	// At is the time of the first damaged block; zero when it is unknown. It may
	// be damaged itself.
	At time.Time
	// Bytes is the amount of stored data found in the range.
	Bytes int
	// Saved holds what the file still has of the range, at most 256 KiB: records
	// of blocks whose table of records is intact. Some bytes of them are wrong.
	Saved []Record
	// Raw holds stored data that cannot be divided into records, within the same
	// bound.
	Raw []byte

	cause error
}

func (e *DamagedError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("records %d to %d are lost", e.First, e.Last)
	}
	return fmt.Sprintf("records %d to %d are damaged: %v", e.First, e.Last, e.cause)
}

// Unwrap returns the error of the checksum, the format or the file.
func (e *DamagedError) Unwrap() error { return e.cause }

// DamagedRange is a range of records that were found damaged.
type DamagedRange struct {
	First uint64    `json:"first"`
	Last  uint64    `json:"last"`
	Bytes int       `json:"bytes"` // stored data found in it
	Found time.Time `json:"found_at"`
	Cause string    `json:"cause"`
}

// damagedError returns the error for a damaged range of the file.
func damagedError(d *format.Damage) *DamagedError {
	e := &DamagedError{First: d.First, Last: d.Last, At: d.At, Bytes: d.Bytes, Raw: d.Raw, cause: d.Cause}
	for _, b := range d.Saved {
		p := selector{maxRecords: b.N, maxBytes: len(b.Data)}
		p.add(b)
		e.Saved = append(e.Saved, p.records()...)
	}
	return e
}

// maxRanges bounds the ranges that a ledger lists.
const maxRanges = 1000

// ledger lists the damaged ranges that were found, each once.
type ledger struct {
	mu     sync.Mutex
	ranges []DamagedRange   // ascending, apart from each other
	kept   []*format.Damage // of files that were replaced: what they held of the ranges
}

// list returns the ranges that end at or after first, and forgets the others.
func (l *ledger) list(first uint64) []DamagedRange {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = slices.DeleteFunc(l.kept, func(d *format.Damage) bool { return d.Last < first })
	l.ranges = slices.DeleteFunc(l.ranges, func(r DamagedRange) bool { return r.Last < first })
	return slices.Clone(l.ranges)
}

// keep keeps what a replaced file held of its damaged ranges.
func (l *ledger) keep(damages []*format.Damage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, damages...)
	l.kept = l.kept[max(0, len(l.kept)-maxKept):]
}

// maxKept bounds the ranges of which a ledger keeps data, each at most 256 KiB.
const maxKept = 64

// recall adds to a range of missing records what a replaced file held of them.
func (l *ledger) recall(d *format.Damage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.kept {
		if k.First > d.Last || k.Last < d.First {
			continue
		}
		d.Cause, d.Bytes = k.Cause, d.Bytes+k.Bytes
		d.Saved, d.Raw = append(d.Saved, k.Saved...), append(d.Raw, k.Raw...)
		if d.At.IsZero() {
			d.At = k.At
		}
	}
}

// add adds a range and returns how many of its records no range held before.
func (l *ledger) add(r DamagedRange) (added uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	added = r.Last - r.First + 1
	kept := l.ranges[:0:0]
	for _, k := range l.ranges {
		if k.Last < r.First || k.First > r.Last {
			kept = append(kept, k)
			continue
		}
		added -= min(k.Last, r.Last) - max(k.First, r.First) + 1
		r.First, r.Last, r.Bytes = min(k.First, r.First), max(k.Last, r.Last), max(k.Bytes, r.Bytes)
		if k.Found.Before(r.Found) { // not simply that of k: the range may join several
			r.Found = k.Found
		}
	}
	if len(kept) < maxRanges {
		kept = append(kept, r)
	}
	slices.SortFunc(kept, func(a, b DamagedRange) int { return cmp.Compare(a.First, b.First) })
	l.ranges = kept
	return added
}

// reportDamage logs and counts a damaged range that was not known before.
func (j *store) reportDamage(d *DamagedError) {
	added := j.damage.add(DamagedRange{First: d.First, Last: d.Last, Bytes: d.Bytes, Found: time.Now().UTC(), Cause: d.cause.Error()})
	if added == 0 {
		return
	}
	j.metrics.countDamaged(added)
	j.log.Error("journal range damaged", zap.Uint64("first", d.First), zap.Uint64("last", d.Last), zap.Int("bytes", d.Bytes),
		zap.Error(d.cause), zap.String("path", j.path))
}

// locate finds the damaged range after a record. It returns nil when the
// records have been trimmed meanwhile, else a *DamagedError, or the error of a
// file that cannot be read now.
func (j *store) locate(ctx context.Context, after uint64, cause error) error {
	damaged, err := j.findDamage(ctx, after, cause)
	// A trim that removed the records before the search has been published when
	// the writer answers.
	if barrier := j.submit(ctx, job{}, false); errors.Is(barrier, errClosing) || ctx.Err() != nil {
		return barrier
	}
	switch first := j.index.span().first; {
	case err != nil:
		return err
	case damaged == nil || damaged.First < first:
		return nil
	}
	j.damage.recall(damaged)
	d := damagedError(damaged)
	j.reportDamage(d)
	return d
}

func (j *store) findDamage(ctx context.Context, after uint64, cause error) (*format.Damage, error) {
	if err := j.enter(); err != nil {
		return nil, err
	}
	defer j.life.RUnlock()
	span := j.index.span()
	after = max(after, span.first-1)
	if after >= span.last || span.empty() {
		return nil, nil
	}
	f, err := format.OpenFile(j.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.FindDamage(ctx, after, span.last, cause)
}
