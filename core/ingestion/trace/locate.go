package trace

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// Bounds of the search of one trace.
const (
	maxSearched  = 64 << 20        // bytes of the journal, or of all partitions
	searchBefore = 2 * time.Second // a request is written a little after its arrival
	searchAfter  = time.Minute
)

// source is a list of records that may hold the event.
type source struct {
	log         reader.Log
	partition   *int // nil for the journal
	maxSearched int  // bytes
}

// sources returns where the event may be, the most likely place first: an event is in
// the partition of the distinct id that it was captured with, which is nearly always the
// stored one.
func (t *Tracer) sources(projectID int64, distinctID string) []source {
	if t.partitions == nil {
		return []source{{t.log, nil, maxSearched}}
	}
	n := t.partitions.Partitions()
	first := 0
	if distinctID != "" {
		first = eventlog.PartitionOf(projectID, distinctID, n)
	}
	out := make([]source, n)
	for i := range out {
		number := (first + i) % n
		out[i] = source{t.partitions.Partition(number, 0), &number, maxSearched / n}
	}
	return out
}

// locateIn finds the event in the journal or in a partition, and returns the state of
// that one.
func (t *Tracer) locateIn(ctx context.Context, projectID int64, id uuid.UUID, out *Trace) (journal.Stats, error) {
	for _, s := range t.sources(projectID, out.DistinctID) {
		stats, err := s.log.Stats(ctx)
		if err == nil {
			err = s.locate(ctx, t.limits, projectID, id, stats, out)
		}
		if err != nil {
			return stats, err
		}
		if out.Accepted != nil {
			out.Accepted.Partition = s.partition
			return stats, nil
		}
	}
	return journal.Stats{}, nil
}

// locate finds the event in the journal. Its arrival is known from the store, from
// a dead letter, or from a version 7 uuid; without one the newest part of the
// journal is searched.
func (s source) locate(ctx context.Context, limits event.Limits, projectID int64, id uuid.UUID, stats journal.Stats, out *Trace) error {
	at := time.Time{}
	switch {
	case out.ReceivedAt != nil:
		at = *out.ReceivedAt
	case id.Version() == 7:
		at = time.UnixMilli(int64(id[0])<<40 | int64(id[1])<<32 | int64(id[2])<<24 | int64(id[3])<<16 | int64(id[4])<<8 | int64(id[5]))
	}
	if !at.IsZero() {
		after, err := s.seqBefore(ctx, stats, at.Add(-searchBefore))
		if err != nil {
			return err
		}
		if found, err := s.search(ctx, limits, projectID, after, at.Add(searchAfter), out); found || err != nil {
			return err
		}
		if out.ReceivedAt != nil {
			return nil // the journal no longer holds it
		}
	}
	newest := uint64(0)
	if stats.Bytes > int64(s.maxSearched) && stats.Records > 0 {
		newest = stats.Last - uint64(float64(stats.Records)*float64(s.maxSearched)/float64(stats.Bytes))
	}
	_, err := s.search(ctx, limits, projectID, newest, time.Time{}, out)
	return err
}

// seqBefore returns a sequence number behind which are all records from then on.
// It bisects the journal.
func (s source) seqBefore(ctx context.Context, stats journal.Stats, then time.Time) (uint64, error) {
	low, high := stats.First-1, stats.Last // after low may be too early, after high is too late
	for low < high {
		middle := low + (high-low)/2
		records, err := s.read(ctx, middle, 1, 1)
		if err != nil {
			return 0, err
		}
		if len(records) == 0 || !records[0].At.Before(then) {
			high = middle
		} else {
			low = records[0].Seq
		}
	}
	return low, nil
}

// read reads records of the journal and skips damaged ones.
func (s source) read(ctx context.Context, after uint64, maxRecords, maxBytes int) ([]journal.Record, error) {
	for {
		records, err := s.log.Read(ctx, after, maxRecords, maxBytes)
		damaged, ok := errors.AsType[*journal.DamagedError](err)
		if !ok || damaged.Last <= after {
			return records, err
		}
		after = damaged.Last
	}
}

// search reads records until one holds the event; the zero time is no end.
func (s source) search(ctx context.Context, limits event.Limits, projectID int64, after uint64, until time.Time, out *Trace) (bool, error) {
	decoder, decoded := event.NewDecoder(limits), new(event.Decoded)
	for searched := 0; searched < s.maxSearched; {
		records, err := s.read(ctx, after, reader.MaxRecords, reader.MaxBytes)
		if err != nil || len(records) == 0 {
			return false, err
		}
		for _, r := range records {
			after, searched = r.Seq, searched+len(r.Data)
			if !until.IsZero() && r.At.After(until) {
				return false, nil
			}
			rec, err := event.ParseRecord(r.Data)
			if err != nil || rec.ProjectID != projectID {
				continue
			}
			decoded.Reset()
			decoder.Decode(&rec, decoded)
			if out.addFrom(decoded) {
				out.Accepted.At, out.Accepted.JournalSeq, out.Accepted.Historical = r.At.UTC(), r.Seq, rec.Historical
				if out.ReceivedAt == nil {
					out.ReceivedAt = &rec.ReceivedAt
				}
				return true, nil
			}
		}
	}
	return false, nil
}

// addFrom fills in the event if the decoded record holds it, kept or dropped.
func (out *Trace) addFrom(d *event.Decoded) bool {
	for i := range d.Events {
		if ev := &d.Events[i]; ev.UUID == out.UUID {
			out.setAccepted(ev, d.Index[i], d)
			return true
		}
	}
	for _, n := range d.Notices {
		if n.Dropped && n.EventUUID == out.UUID {
			out.setAccepted(&sdk.Event{Name: n.EventName, DistinctID: n.DistinctID}, n.Index, d)
			return true
		}
	}
	return false
}

// setAccepted fills in the event from its place in a record.
func (out *Trace) setAccepted(ev *sdk.Event, index uint32, d *event.Decoded) {
	out.Accepted = &Place{Index: index}
	if !out.Stored {
		out.Event, out.DistinctID = ev.Name, ev.DistinctID
	}
	for _, n := range d.Notices {
		if n.Index == index {
			out.Notices = append(out.Notices, Notice{n.Kind, n.Dropped, n.Detail})
		}
	}
}
