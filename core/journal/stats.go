package journal

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/journal/files"
	"github.com/guidonhq/guidon/core/journal/format"
)

// Stats describes the journal; see Journal.
func (j *store) Stats(ctx context.Context) (Stats, error) {
	if err := j.enter(); err != nil {
		return Stats{}, err
	}
	defer j.life.RUnlock()
	span, cursors := j.index.now()
	s := Stats{
		ID: j.id, First: span.first, Last: span.last, Records: span.records(), Bytes: span.bytes(),
		Broken: j.health.refusal(), Damaged: j.damage.list(span.first),
	}
	if list, err := j.incidents.List(); err == nil {
		s.Incidents = list
	}
	if p := j.previous; p != nil && len(s.Incidents) > 0 {
		s.Previous = &Previous{ID: p.ID, Last: p.Last}
	}
	if !span.empty() {
		s.OldestAt = time.UnixMicro(span.firstAt)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		n, err := files.Size(j.path + suffix)
		if err != nil && s.Broken == nil {
			s.Broken = errUnavailable.Because(err)
		}
		s.FileBytes += n
	}
	for name, c := range cursors {
		r, err := j.readerStats(ctx, name, c, span)
		if err != nil {
			return s, err
		}
		s.Readers = append(s.Readers, r)
	}
	slices.SortFunc(s.Readers, func(a, b ReaderStats) int { return strings.Compare(a.Name, b.Name) })
	return s, nil
}

// Skipped excludes the records through a number from the lag of a reader that has
// nothing to do in them, before its cursor is committed.
func (j *store) Skipped(reader string, through uint64) { j.skipped.Store(reader, through) }

// readerStats measures the records between a cursor and the end of span.
func (j *store) readerStats(ctx context.Context, name string, c cursor, span extent) (ReaderStats, error) {
	r := ReaderStats{Name: name, Position: c.position, Dropped: c.dropped}
	skipped, _ := j.skipped.Load(name)
	through, _ := skipped.(uint64)
	after := max(c.position.Seq, through, span.first-1)
	if after >= span.last {
		return r, nil
	}
	r.Lag = int64(span.last - after)
	one := selector{after: after, maxRecords: 1}
	if !j.tail.selectFrom(&one) {
		// Data is not read for a number: a large record is a block of its own.
		var at, pos int64
		if j.reads.QueryRowContext(ctx, format.SingleFromSQL, int64(after+1)).Scan(&at, &pos) == nil && pos >= span.firstPos && pos < span.endPos {
			r.OldestAt, r.Bytes = time.UnixMicro(at), span.endPos-pos
			return r, nil
		}
		err := j.blocksAt(ctx, int64(after+1), one.add)
		if format.IsDamage(err) { // the place and the age of a damaged record are not known
			r.Bytes = span.bytes() * r.Lag / span.records()
			return r, nil
		}
		if err != nil {
			return r, readFault(ctx, err)
		}
	}
	if len(one.ranges) == 0 {
		return r, nil // trimmed since
	}
	k := one.ranges[0]
	r.OldestAt = k.block.Time()
	r.Bytes = span.endPos - k.block.Pos - int64(k.block.End(k.from-1))
	return r, nil
}
