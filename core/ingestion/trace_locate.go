package ingestion

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// How much of the journal one trace looks through at most.
const (
	traceBytes  = 64 << 20
	traceBefore = 2 * time.Second // a request waits a little before it is written
	traceAfter  = time.Minute
)

// locate finds the event in the journal. When it arrived is known from the
// store, from a dead letter, or from the uuid itself when that tells a time;
// otherwise the newest part of the journal is looked through.
func (t *Tracer) locate(ctx context.Context, projectID int64, id uuid.UUID, stats journal.Stats, out *Trace) error {
	at := time.Time{}
	switch {
	case out.ReceivedAt != nil:
		at = *out.ReceivedAt
	case id.Version() == 7:
		at = time.UnixMilli(int64(id[0])<<40 | int64(id[1])<<32 | int64(id[2])<<24 | int64(id[3])<<16 | int64(id[4])<<8 | int64(id[5]))
	}
	if !at.IsZero() {
		after, err := t.before(ctx, stats, at.Add(-traceBefore))
		if err != nil {
			return err
		}
		if found, err := t.look(ctx, projectID, after, at.Add(traceAfter), out); found || err != nil {
			return err
		}
		if out.ReceivedAt != nil {
			return nil // it was there
		}
	}
	newest := uint64(0)
	if stats.Bytes > traceBytes && stats.Records > 0 {
		newest = stats.Last - uint64(float64(stats.Records)*traceBytes/float64(stats.Bytes))
	}
	_, err := t.look(ctx, projectID, newest, time.Time{}, out)
	return err
}

// before returns a sequence number behind which all records from then on are,
// found by halving.
func (t *Tracer) before(ctx context.Context, stats journal.Stats, then time.Time) (uint64, error) {
	low, high := stats.First-1, stats.Last // after low may be too early, after high is too late
	for low < high {
		middle := low + (high-low)/2
		records, err := t.log.Read(ctx, middle, 1, 1)
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

// look reads records until one holds the event; the zero time is no end.
func (t *Tracer) look(ctx context.Context, projectID int64, after uint64, until time.Time, out *Trace) (bool, error) {
	decoder, decoded := event.NewDecoder(t.decoder), new(event.Decoded)
	for looked := 0; looked < traceBytes; {
		records, err := t.log.Read(ctx, after, readRecords, readBytes)
		if err != nil || len(records) == 0 {
			return false, err
		}
		for _, r := range records {
			after, looked = r.Seq, looked+len(r.Data)
			if !until.IsZero() && r.At.After(until) {
				return false, nil
			}
			rec, err := event.ParseRecord(r.Data)
			if err != nil || rec.ProjectID != projectID {
				continue
			}
			decoded.Reset()
			decoder.Decode(&rec, decoded)
			if out.matches(decoded) {
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

// matches looks for the event among those of a record, kept and dropped.
func (out *Trace) matches(d *event.Decoded) bool {
	for i := range d.Events {
		if ev := &d.Events[i]; ev.UUID == out.UUID {
			out.take(ev, d.Index[i], d)
			return true
		}
	}
	for _, n := range d.Notices {
		if n.Dropped && n.EventUUID == out.UUID {
			out.take(&sdk.Event{Name: n.EventName, DistinctID: n.DistinctID}, n.Index, d)
			return true
		}
	}
	return false
}

func (out *Trace) take(ev *sdk.Event, index uint32, d *event.Decoded) {
	out.Accepted = &TracePlace{Index: index}
	if !out.Stored {
		out.Event, out.DistinctID = ev.Name, ev.DistinctID
	}
	for _, n := range d.Notices {
		if n.Index == index {
			out.Notices = append(out.Notices, TraceNotice{n.Kind, n.Dropped, n.Detail})
		}
	}
}
