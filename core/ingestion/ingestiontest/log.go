package ingestiontest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// MemoryLog is a log in memory, with the tokens of a shared one.
type MemoryLog struct {
	mu         sync.Mutex
	partitions []memoryPartition
	changed    chan struct{} // closed by Append
	fail       func(eventlog.Part) error
}

type memoryPartition struct {
	records []journal.Record
	token   int64
	cursors map[string]journal.Position
}

var _ eventlog.Log = (*MemoryLog)(nil)

// NewMemoryLog returns an empty log with n partitions.
func NewMemoryLog(n int) *MemoryLog {
	l := &MemoryLog{partitions: make([]memoryPartition, n), changed: make(chan struct{})}
	for i := range l.partitions {
		l.partitions[i].cursors = map[string]journal.Position{}
	}
	return l
}

// FailWith makes the append of a part fail as fn does; the parts before it are
// stored. nil ends that.
func (l *MemoryLog) FailWith(fn func(eventlog.Part) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = fn
}

// Records returns the data of the records of a partition.
func (l *MemoryLog) Records(partition int) (out [][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.partitions[partition].records {
		out = append(out, r.Data)
	}
	return out
}

// Partitions implements eventlog.Log.
func (l *MemoryLog) Partitions() int { return len(l.partitions) }

// Append implements eventlog.Log.
func (l *MemoryLog) Append(_ context.Context, parts []eventlog.Part) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range parts {
		if l.fail != nil {
			if err := l.fail(p); err != nil {
				return err
			}
		}
		m := &l.partitions[p.Partition]
		m.records = append(m.records, journal.Record{Seq: uint64(len(m.records) + 1), At: time.Now(), Data: bytes.Clone(p.Data)})
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// Partition implements eventlog.Log.
func (l *MemoryLog) Partition(number int, token int64) eventlog.Partition {
	return &memoryReader{log: l, number: number, token: token}
}

// Register implements eventlog.Log.
func (l *MemoryLog) Register(ctx context.Context, reader string, from journal.Start) error {
	for n := range l.partitions {
		if _, err := l.Partition(n, 0).Register(ctx, reader, from); err != nil && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return nil
}

// Close implements eventlog.Log.
func (l *MemoryLog) Close(context.Context) error { return nil }

// memoryReader is a partition under a token.
type memoryReader struct {
	log    *MemoryLog
	number int
	token  int64
}

var errToken = fault.New(fault.Conflict, "lease_lost", "Another node has taken the partition over.")

// open locks the log and returns the partition; the caller unlocks.
func (r *memoryReader) open(fence bool) (*memoryPartition, error) {
	r.log.mu.Lock()
	p := &r.log.partitions[r.number]
	if fence && r.token < p.token {
		return p, errToken
	}
	if fence {
		p.token = r.token
	}
	return p, nil
}

func (r *memoryReader) Read(_ context.Context, after uint64, maxRecords, _ int) ([]journal.Record, error) {
	p, _ := r.open(false)
	defer r.log.mu.Unlock()
	if after >= uint64(len(p.records)) {
		return nil, nil
	}
	rest := p.records[after:]
	return append([]journal.Record(nil), rest[:min(len(rest), maxRecords)]...), nil
}

func (r *memoryReader) Wait(ctx context.Context, after uint64) error {
	for {
		p, _ := r.open(false)
		more, changed := uint64(len(p.records)) > after, r.log.changed
		r.log.mu.Unlock()
		if more {
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *memoryReader) Register(_ context.Context, reader string, from journal.Start) (journal.Position, error) {
	p, err := r.open(true)
	defer r.log.mu.Unlock()
	if err != nil {
		return journal.Position{}, err
	}
	at, ok := p.cursors[reader]
	if !ok {
		if from == journal.End {
			at.Seq = uint64(len(p.records))
		}
		p.cursors[reader] = at
	}
	return at, nil
}

func (r *memoryReader) Commit(_ context.Context, reader string, at journal.Position) error {
	p, err := r.open(true)
	defer r.log.mu.Unlock()
	if err == nil && at.Before(p.cursors[reader]) {
		err = fault.New(fault.Conflict, "cursor_backwards", "A cursor never moves backwards.")
	}
	if err == nil {
		p.cursors[reader] = at
	}
	return err
}

func (r *memoryReader) Unregister(_ context.Context, reader string) error {
	p, err := r.open(true)
	defer r.log.mu.Unlock()
	if err == nil {
		delete(p.cursors, reader)
	}
	return err
}

func (r *memoryReader) Stats(context.Context) (journal.Stats, error) {
	p, _ := r.open(false)
	defer r.log.mu.Unlock()
	s := journal.Stats{ID: fmt.Sprintf("memory/%d", r.number), First: 1, Last: uint64(len(p.records)), Records: int64(len(p.records))}
	for name, at := range p.cursors {
		s.Readers = append(s.Readers, journal.ReaderStats{Name: name, Position: at, Lag: int64(len(p.records)) - int64(at.Seq)})
	}
	return s, nil
}
