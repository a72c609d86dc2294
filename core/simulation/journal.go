package simulation

import (
	"context"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// Journal is a journal in memory that keeps every record and outlives processes. Its
// methods are safe for concurrent use.
type Journal struct {
	// OnCommit is called before a cursor moves and before a reader is removed, which
	// has no position then. It may be nil.
	OnCommit func(reader string, to *journal.Position)

	mu      sync.Mutex
	records []journal.Record
	readers map[string]journal.Position
	more    chan struct{} // closed when a record comes
}

// NewJournal returns an empty journal.
func NewJournal() *Journal {
	return &Journal{readers: map[string]journal.Position{}, more: make(chan struct{})}
}

// Readers returns the committed position of each reader.
func (j *Journal) Readers() map[string]journal.Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make(map[string]journal.Position, len(j.readers))
	for name, at := range j.readers {
		out[name] = at
	}
	return out
}

// Records returns the records after a number. Their data must not be changed.
func (j *Journal) Records(after uint64) []journal.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.records[min(after, uint64(len(j.records))):len(j.records):len(j.records)]
}

// Last returns the number of the newest record.
func (j *Journal) Last() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return uint64(len(j.records))
}

// Open returns the journal as a process has it.
func (j *Journal) Open(p *Process) *OpenJournal { return &OpenJournal{j, p} }

// OpenJournal is a Journal with the failures of a process. It has the methods of
// journal.Journal that capture and readers use, with the same promises.
type OpenJournal struct {
	*Journal

	process *Process
}

// The rates of the operations of the journal.
var (
	appendRates = Rates{Fail: 0.02, Lose: 0.02, End: 0.003, Slow: 2 * time.Second}
	readRates   = Rates{Fail: 0.01, Slow: time.Second}
	commitRates = Rates{Fail: 0.02, Lose: 0.02, End: 0.01, Slow: 2 * time.Second}
)

// Append appends a record.
func (j *OpenJournal) Append(_ context.Context, data []byte) (seq uint64, err error) {
	err = j.process.Do("journal append", appendRates, func() error {
		j.mu.Lock()
		defer j.mu.Unlock()
		seq = uint64(len(j.records)) + 1
		j.records = append(j.records, journal.Record{Seq: seq, At: time.Now(), Data: append([]byte(nil), data...)})
		close(j.more)
		j.more = make(chan struct{})
		return nil
	})
	return seq, err
}

// Read returns records after a number.
func (j *OpenJournal) Read(ctx context.Context, after uint64, maxRecords, _ int) (records []journal.Record, err error) {
	err = j.process.Do("journal read", readRates, func() error {
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, r := range j.records[min(after, uint64(len(j.records))):] {
			if len(records) == maxRecords {
				break
			}
			r.Data = append([]byte(nil), r.Data...)
			records = append(records, r)
		}
		return ctx.Err()
	})
	return records, err
}

// Wait waits for a record after a number.
func (j *OpenJournal) Wait(ctx context.Context, after uint64) error {
	for {
		j.mu.Lock()
		last, more := uint64(len(j.records)), j.more
		j.mu.Unlock()
		if last > after {
			return ctx.Err()
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		case <-j.process.Ended():
			return ErrEnded
		}
	}
}

// Register registers a reader or returns its position.
func (j *OpenJournal) Register(_ context.Context, reader string, from journal.Start) (at journal.Position, err error) {
	err = j.process.Do("journal register", commitRates, func() error {
		j.mu.Lock()
		defer j.mu.Unlock()
		var known bool
		if at, known = j.readers[reader]; !known {
			if from == journal.End {
				at.Seq = uint64(len(j.records))
			}
			j.readers[reader] = at
		}
		return nil
	})
	return at, err
}

// Commit moves the cursor of a reader.
func (j *OpenJournal) Commit(_ context.Context, reader string, p journal.Position) error {
	return j.process.Do("journal commit", commitRates, func() error {
		if j.OnCommit != nil {
			j.OnCommit(reader, &p)
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		at, known := j.readers[reader]
		switch {
		case !known:
			return fault.New(fault.NotFound, "not_found", "The reader is not registered.")
		case p.Before(at) || p.Count < at.Count:
			return fault.New(fault.Conflict, "conflict", "The cursor would move backwards.")
		case p.Seq > uint64(len(j.records)):
			return fault.New(fault.Invalid, "invalid", "The cursor would be beyond the newest record.")
		}
		j.readers[reader] = p
		return nil
	})
}

// Unregister removes a reader.
func (j *OpenJournal) Unregister(_ context.Context, reader string) error {
	return j.process.Do("journal unregister", commitRates, func() error {
		if j.OnCommit != nil {
			j.OnCommit(reader, nil)
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.readers, reader)
		return nil
	})
}

// Stats describes the journal and its readers.
func (j *OpenJournal) Stats(context.Context) (out journal.Stats, err error) {
	err = j.process.Do("journal stats", readRates, func() error {
		j.mu.Lock()
		defer j.mu.Unlock()
		out = journal.Stats{ID: "simulated", First: 1, Last: uint64(len(j.records)), Records: int64(len(j.records))}
		for name, at := range j.readers {
			out.Readers = append(out.Readers, journal.ReaderStats{Name: name, Position: at, Lag: int64(out.Last - at.Seq)})
		}
		return nil
	})
	return out, err
}
