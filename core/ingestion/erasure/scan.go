package erasure

import (
	"context"
	"errors"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/persons"
)

// The size of one read.
const (
	scanRecords = 4096
	scanBytes   = 16 << 20
)

// recordReader reads records of the journal, or of a partition.
type recordReader interface {
	Read(ctx context.Context, after uint64, maxRecords, maxBytes int) ([]journal.Record, error)
}

// position is a record of a log. The digest of its data tells it from another record that
// has got the same number, because the log has lost its newest records.
type position struct{ seq, digest uint64 }

func positionOf(r *journal.Record) position { return position{r.Seq, xxhash.Sum64(r.Data)} }

// erasureList has the erasures of records, each once with its newest record: one that was
// interrupted has several.
type erasureList struct {
	all   []Erasure
	place map[string]int // by id
}

func (l *erasureList) add(more ...Erasure) {
	for _, e := range more {
		at, ok := l.place[e.ID]
		if !ok {
			if l.place == nil {
				l.place = map[string]int{}
			}
			at = len(l.all)
			l.place[e.ID] = at
			l.all = append(l.all, e)
		}
		l.all[at] = e
	}
}

// chunk is what one read has found.
type chunk struct {
	records, bytes int
	through        position // the last record; after damage the last damaged number
	found          []Erasure
	// unread is the last number that could not be read, 0 if all could.
	unread uint64
}

// isEnd reports whether there was nothing to read.
func (c *chunk) isEnd() bool { return c.records == 0 && c.unread == 0 }

// readChunk reads records behind a number, and returns their erasures.
func (s *Service) readChunk(ctx context.Context, from recordReader, journalID string, after uint64, maxRecords, maxBytes int) (c chunk, err error) {
	records, err := from.Read(ctx, after, maxRecords, maxBytes)
	if damaged, ok := errors.AsType[*journal.DamagedError](err); ok {
		c.unread = max(after+1, damaged.Last) // the readers report it
		c.through = position{seq: c.unread}
		return c, nil
	}
	if err != nil {
		return c, err
	}
	c.records = len(records)
	for i := range records {
		r := &records[i]
		c.bytes += len(r.Data)
		if !event.IsErasure(r.Data) {
			continue
		}
		e, err := event.ParseErasure(r.Data)
		if err != nil {
			s.log.Error("erasure in the journal unreadable", zap.Uint64("seq", r.Seq), zap.Error(err))
			c.unread = r.Seq
			continue
		}
		c.found = append(c.found, Erasure{
			Removal: persons.Removal{ProjectID: e.ProjectID, DistinctIDs: e.DistinctIDs, Events: e.Events},
			ID:      e.ID, RequestedAt: e.At, Journal: journalID, Seq: r.Seq,
		})
	}
	if c.records > 0 {
		c.through = positionOf(&records[c.records-1])
	}
	return c, nil
}

// scanJournal returns the erasures in the records (after, last] of the journal.
func (s *Service) scanJournal(ctx context.Context, after, last uint64) ([]Erasure, error) {
	var found erasureList
	for after < last {
		c, err := s.readChunk(ctx, s.journal, s.journalID(), after, scanRecords, scanBytes)
		if err != nil || c.isEnd() {
			return found.all, err
		}
		found.add(c.found...)
		after = c.through.seq
	}
	return found.all, nil
}
