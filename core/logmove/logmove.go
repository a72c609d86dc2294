// Package logmove moves unprocessed records from the journal of a stopped server to a log
// that servers share.
//
// Move reads the records that at least one reader of the journal has not done, in their
// order, divides each by the partitions of the log, and appends the parts. Its progress is
// the cursor of a reader of the journal, one for each target: a move that was interrupted
// continues, and repeats at most the records of one append.
//
// # What arrives twice
//
// A record is moved if any reader needs it. The worker that has processed it removes its
// events again by their uuids, which derive from the request and the index of the event in
// it; both are in the parts. A sink has no such memory: one that was ahead of the slowest
// reader receives the events between the two once more, with the same uuids, as after any
// restart. Sinks and followers of the journal have cursors in the log before the first
// record is moved.
//
// # Erasures
//
// The record of an erasure is appended to every partition, behind all that was before it in
// the journal. The readers of a partition look for these records before they process it, so
// an event of an erased person does not come back.
//
// # What it does not do
//
// Records that the disk has lost are skipped and counted. Records that this version cannot
// read go to partition 0, where the worker makes dead letters of them. The journal itself
// stays as it is.
package logmove

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
)

// Options are optional.
type Options struct {
	// DryRun counts the records and appends nothing.
	DryRun bool
	// Check is called before each append; its error ends the move.
	Check func(context.Context) error
	// Progress is called after each append.
	Progress func(Report)
}

// Report is the outcome of a move so far.
type Report struct {
	First    uint64 `json:"first"`    // the first record that some reader needs
	Last     uint64 `json:"last"`     // the newest record of the journal
	Through  uint64 `json:"through"`  // the last record that the log has now
	Resumed  bool   `json:"resumed"`  // an earlier move has done records from First on
	Records  int64  `json:"records"`  // moved by this call, or to be moved with DryRun
	Parts    int64  `json:"parts"`    // records of the log that they became
	Bytes    int64  `json:"bytes"`    // of the parts
	Erasures int64  `json:"erasures"` // records of erasures, which are in every partition
	Lost     int64  `json:"lost"`     // records that the disk has lost
	Unknown  int64  `json:"unknown"`  // records that this version cannot read
}

// Left returns the number of records that are not moved yet, at most.
func (r *Report) Left() int64 { return int64(r.Last) - int64(r.Through) }

// The size of one append.
const (
	maxRecords = 512
	maxBytes   = 4 << 20
)

// reader is the prefix of the names of the readers that keep the progress.
const reader = "move/"

// Move appends what readers of from have not done to to, and returns when all of it is
// durable there. No server may use from. After an error it can be called again.
func Move(ctx context.Context, from journal.Journal, to eventlog.Log, o Options) (Report, error) {
	m := mover{from: from, to: to, Options: o}
	if err := m.begin(ctx); err != nil {
		return m.report, err
	}
	for m.report.Through < m.report.Last {
		if err := m.step(ctx); err != nil {
			return m.report, err
		}
		if o.Progress != nil {
			o.Progress(m.report)
		}
	}
	return m.report, nil
}

type mover struct {
	Options
	from     journal.Journal
	to       eventlog.Log
	name     string // of the reader of the journal
	splitter *event.Splitter
	report   Report
	buf      []byte
	parts    []eventlog.Part
}

func (m *mover) begin(ctx context.Context) error {
	n := m.to.Partitions()
	m.splitter = event.NewSplitter(func(projectID int64, distinctID string) int {
		return eventlog.PartitionOf(projectID, distinctID, n)
	})
	target, err := m.to.Partition(0, 0).Stats(ctx)
	if err != nil {
		return fmt.Errorf("read the state of the log: %w", err)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(target.ID))
	m.name = fmt.Sprintf("%s%016x", reader, h.Sum64())
	stats, err := m.from.Stats(ctx)
	if err != nil {
		return fmt.Errorf("read the state of the journal: %w", err)
	}
	done, moved := needed(&stats, m.name)
	m.report.First, m.report.Last = done+1, stats.Last
	m.report.Resumed = moved > done
	m.report.Through = max(done, moved)
	if m.DryRun || m.report.Through >= m.report.Last {
		return nil
	}
	if _, err = m.from.Register(ctx, m.name, journal.Begin); err != nil {
		return fmt.Errorf("keep the progress in the journal: %w", err)
	}
	return m.registerReaders(ctx, stats.Readers)
}

// registerReaders gives the sinks and followers of the journal cursors at the end of all
// partitions, unless they have one, so that the records that are moved reach them. The
// worker reads a log from its begin.
func (m *mover) registerReaders(ctx context.Context, readers []journal.ReaderStats) error {
	for _, r := range readers {
		if !strings.HasPrefix(r.Name, "sink/") && !strings.HasPrefix(r.Name, "follower/") {
			continue
		}
		if err := m.to.Register(ctx, r.Name, journal.End); err != nil {
			return err
		}
	}
	return nil
}

// needed returns the record through which all readers are done, and that of the reader name.
func needed(stats *journal.Stats, name string) (done, moved uint64) {
	found := false
	for _, r := range stats.Readers {
		switch {
		case r.Name == name:
			moved = r.Position.Seq
		case len(r.Name) > len(reader) && r.Name[:len(reader)] == reader: // of another target
		case !found || r.Position.Seq < done:
			done, found = r.Position.Seq, true
		}
	}
	if stats.First > 0 {
		done = max(done, stats.First-1)
	}
	return min(done, stats.Last), moved
}

// step moves the records of one append.
func (m *mover) step(ctx context.Context) error {
	records, err := m.from.Read(ctx, m.report.Through, maxRecords, maxBytes)
	through := m.report.Through
	var damaged *journal.DamagedError
	switch {
	case errors.As(err, &damaged):
		m.report.Lost += int64(damaged.Last - damaged.First + 1)
		through = max(through+1, damaged.Last)
	case err != nil:
		return fmt.Errorf("read the journal behind record %d: %w", m.report.Through, err)
	case len(records) == 0: // the numbers up to the last one are not used
		through = m.report.Last
	default:
		through = records[len(records)-1].Seq
	}
	m.parts, m.buf = m.parts[:0], m.buf[:0]
	for i := range records {
		if err := m.add(&records[i]); err != nil {
			return err
		}
	}
	if !m.DryRun {
		if err := m.append(ctx, through); err != nil {
			return err
		}
	}
	m.report.Through = through
	m.report.Records += int64(len(records))
	m.report.Parts += int64(len(m.parts))
	for _, p := range m.parts {
		m.report.Bytes += int64(len(p.Data))
	}
	return nil
}

// append appends m.parts to the log and keeps that the records up to through are moved.
func (m *mover) append(ctx context.Context, through uint64) error {
	if m.Check != nil {
		if err := m.Check(ctx); err != nil {
			return err
		}
	}
	if len(m.parts) > 0 {
		if err := m.to.Append(ctx, m.parts); err != nil {
			return fmt.Errorf("append records %d to %d: %w", m.report.Through+1, through, err)
		}
	}
	if err := m.from.Commit(ctx, m.name, journal.Position{Seq: through}); err != nil {
		return fmt.Errorf("keep the progress in the journal: %w", err)
	}
	return nil
}

// add appends the parts of a record to m.parts. They share no memory with later ones that
// would change: a longer buffer leaves the old one as it is.
func (m *mover) add(r *journal.Record) error {
	if event.IsErasure(r.Data) {
		m.report.Erasures++
		for i := range m.to.Partitions() {
			m.parts = append(m.parts, eventlog.Part{Partition: i, Data: r.Data})
		}
		return nil
	}
	rec, err := event.ParseRecord(r.Data)
	if errors.Is(err, event.ErrRecord) {
		m.report.Unknown++
		m.parts = append(m.parts, eventlog.Part{Data: r.Data})
		return nil
	}
	if err != nil {
		return fmt.Errorf("read record %d: %w", r.Seq, err)
	}
	var parts []event.Part
	parts, m.buf = m.splitter.Split(&rec, m.buf)
	for _, p := range parts {
		m.parts = append(m.parts, eventlog.Part(p))
	}
	return nil
}
