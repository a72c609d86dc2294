package parquet

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/guidonhq/guidon/sdk"
)

// held is the rows that wait for a flush, by their number.
type held struct {
	rows  []row
	bytes int
}

// Write holds the batch, but for events that a flush has made safe already.
// When the server begins anew at a number that is held, the events held from there
// on are replaced by the ones it sends now.
func (s *Sink) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	if err := s.remember(ctx, b.FirstSeq); err != nil {
		return sdk.WriteResult{}, err
	}
	s.held.cut(b.FirstSeq)
	s.taken = b.LastSeq
	events, err := b.Events()
	if err != nil {
		return sdk.WriteResult{}, sdk.Permanent(err)
	}
	var duplicates uint32
	for i := range events {
		r := rowOf(&events[i], b.Records[i].UUID, b.FirstSeq+uint64(i))
		if s.safe.has(r.identity()) {
			duplicates++
			continue
		}
		r.size = len(b.Records[i].JSON)
		s.held.rows = append(s.held.rows, r)
		s.held.bytes += r.size
	}
	s.accepted = b.LastSeq
	result := b.Staged(s.committed)
	result.StagedEvents, result.StagedBytes = uint64(len(s.held.rows)), uint64(s.held.bytes)
	result.Duplicates = duplicates
	return result, nil
}

// cut removes the rows from seq on.
func (h *held) cut(seq uint64) {
	n, _ := slices.BinarySearchFunc(h.rows, int64(seq), func(r row, seq int64) int { return cmp.Compare(r.Seq, seq) })
	for i := n; i < len(h.rows); i++ {
		h.bytes -= h.rows[i].size
	}
	clear(h.rows[n:])
	h.rows = h.rows[:n]
}

// Flush writes all held events, also those above req.UpTo, and returns
// so. When it fails nothing is vouched for, and the server sends everything
// again.
func (s *Sink) Flush(ctx context.Context, req sdk.FlushRequest) (sdk.FlushResult, error) {
	rows, taken, accepted := s.held.rows, s.taken, s.accepted
	s.held, s.taken, s.accepted, s.settled = held{}, 0, 0, false
	if len(rows) > 0 {
		if err := s.write(ctx, rows); err != nil {
			s.safe, s.known = nil, false // some files may be there
			return sdk.FlushResult{}, err
		}
	}
	// Records that were refused are in no file, and are done with as well.
	s.committed = max(s.committed, accepted, min(req.UpTo, taken))
	return sdk.FlushResult{CommittedThrough: s.committed}, nil
}

// write puts the rows into the files they belong to, after a note of which
// these are.
func (s *Sink) write(ctx context.Context, rows []row) error {
	files := s.files(rows)
	now := newFlush(rows, files)
	s.safe = s.safe[max(0, len(s.safe)-maxNotes):]
	if err := s.writeNotes(ctx, append(slices.Clip(s.safe), now)); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for name, rows := range files {
		group.Go(func() error {
			data, err := encode(rows)
			if err != nil {
				return sdk.Errorf(sdk.ClassInternal, "encode", "cannot encode %s: %w", name, err).From(sdk.SourcePlugin)
			}
			return s.place.put(ctx, name, data)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	s.safe = append(s.safe, now)
	return nil
}
