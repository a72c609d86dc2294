package erasure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/eventlog"
)

// OnLog makes the service append the record of an erasure to every partition of a log,
// and write a mark for each: several nodes process the log, and each transaction reads
// the marks that concern it (Partition). It must be called before Start.
//
// An event that a client sends while its person is being erased may belong to the old
// person or to a new one: the mark of a partition is its newest record after the
// append, which is the record of the erasure or one a little behind it.
func (s *Service) OnLog(l eventlog.Log) {
	s.partitions = l
}

// place is the mark of a partition.
type place struct {
	journal string // id of the partition
	seq     uint64
}

// appendToAll appends the records of erasures to every partition, and returns their marks.
func (s *Service) appendToAll(ctx context.Context, records [][]byte) ([]place, error) {
	var parts []eventlog.Part
	for i := range s.partitions.Partitions() {
		for _, data := range records {
			parts = append(parts, eventlog.Part{Partition: i, Data: data})
		}
	}
	if err := s.partitions.Append(ctx, parts); err != nil {
		return nil, fmt.Errorf("append erasure to the log: %w", err)
	}
	places := make([]place, s.partitions.Partitions())
	for i := range places {
		stats, err := s.partitions.Partition(i, 0).Stats(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the state of partition %d: %w", i, err)
		}
		places[i] = place{stats.ID, stats.Last}
	}
	return places, nil
}

// isOnLog reports whether the records of an erasure are in the partitions. The marks were
// written with the number. An erasure that is recovered from the log has its records
// there, for which the owners of the partitions write the marks: a further record would be
// behind events that were accepted after the erasure.
func (s *Service) isOnLog(e *Erasure) bool {
	recovered := e.PersonID == 0
	return recovered || e.Seq != 0 && e.Journal == s.journalID()
}

// rememberOnLog appends the records of erasures to every partition, unless that was done,
// and writes the marks. When it returns, every transaction of the pipeline on any node
// that does not know the erasures has ended.
func (s *Service) rememberOnLog(ctx context.Context, list ...*Erasure) error {
	list = slices.DeleteFunc(slices.Clone(list), s.isOnLog)
	if len(list) == 0 {
		return nil
	}
	list, err := s.store.markBegun(ctx, s.journalID(), list)
	if err != nil || len(list) == 0 {
		return err
	}
	records := make([][]byte, len(list))
	for i, e := range list {
		if records[i], err = e.record(); err != nil {
			return err
		}
	}
	places, err := s.appendToAll(ctx, records)
	if err != nil {
		return errors.Join(err, s.store.clearBegun(ctx, list))
	}
	for _, e := range list {
		e.Journal, e.Seq = places[0].journal, places[0].seq
	}
	if err := s.store.remember(ctx, s.memory.key, list, places, true); err != nil {
		for _, e := range list {
			e.Seq = 0
		}
		return err
	}
	return nil
}

// The bounds of erasures that share an append and a transaction, and of their distinct ids:
// the transaction writes a mark for each id and partition.
const (
	maxTogether    = 100
	maxIDsTogether = 1000
)

// rememberTogether remembers open erasures in groups: the lock of the transaction that
// writes marks waits for the transactions of the pipeline on all nodes, and blocks them.
// An erasure whose group fails is remembered when it is carried out.
func (s *Service) rememberTogether(ctx context.Context, open []Erasure) {
	for len(open) > 0 && ctx.Err() == nil {
		n := groupLength(open)
		group := make([]*Erasure, n)
		for i := range group {
			group[i] = &open[i]
		}
		open = open[n:]
		if err := s.rememberOnLog(ctx, group...); err != nil {
			s.log.Warn("erasures not remembered together; remembering one after the other", zap.Int("erasures", n), zap.Error(err))
		}
	}
}

// groupLength returns how many of the first erasures share an append: at least one.
func groupLength(open []Erasure) int {
	n, ids := min(len(open), maxTogether), 0
	for i := range n {
		if ids += len(open[i].DistinctIDs); i > 0 && ids > maxIDsTogether {
			return i
		}
	}
	return n
}

// Partition has the erasures of one partition of a log, for the pipeline.
type Partition struct {
	*Service
	records eventlog.Partition
	id      string // of the partition, "" before Recover
	cursor  Cursor // of the live lane; may be nil
	scan    *scan  // nil before Recover

	saveRecords int // see isDue

	once      sync.Once
	recovered chan struct{} // closed when Recover has succeeded
}

// Partition returns the erasures of a partition, for one unit of the pipeline.
func (s *Service) Partition(number int) *Partition {
	return &Partition{Service: s, records: s.partitions.Partition(number, 0), saveRecords: saveRecords, recovered: make(chan struct{})}
}

// Lock makes erasures on any node wait for the transaction of ctx before they delete
// anything. It does nothing without a log in partitions.
func (s *Service) Lock(ctx context.Context) error {
	if s.partitions == nil {
		return nil
	}
	return s.store.lock(ctx, false)
}

// Begin has no effect: the transaction holds a lock of the database.
func (p *Partition) Begin() (end func()) { return func() {} }

// Load returns the erasures that concern records of the partition behind a number, for
// the transaction of ctx. An erasure deletes nothing while a transaction is running
// that does not know it.
func (p *Partition) Load(ctx context.Context, after uint64) (*Loaded, error) {
	if err := p.Lock(ctx); err != nil {
		return nil, err
	}
	return p.Marks(ctx, after)
}

// Marks returns the erasures that concern records of the partition behind a number and
// that are known now, for a reader that writes nothing of persons. Recover must have
// succeeded.
func (p *Partition) Marks(ctx context.Context, after uint64) (*Loaded, error) {
	out := &Loaded{Partition: p}
	out.marks.key = p.memory.key
	return out, p.store.marks(ctx, p.id, after+1, out.marks.set)
}

// Loaded are the erasures of a partition as of one transaction.
type Loaded struct {
	*Partition
	marks memory
}

// Concerns reports whether the transaction may meet events of erased persons of the
// project.
func (l *Loaded) Concerns(projectID int64) bool { return len(l.marks.marks[projectID]) > 0 }

// Verdict returns what becomes of an event of the record with this number.
func (l *Loaded) Verdict(projectID int64, distinctID string, seq uint64) Verdict {
	return l.marks.verdict(projectID, distinctID, seq)
}

// Any reports whether any event behind the number may be erased.
func (l *Loaded) Any() bool { return len(l.marks.marks) > 0 }

// Dropped reports whether the event of the record with this number was erased.
func (l *Loaded) Dropped(projectID int64, distinctID string, seq uint64) bool {
	return l.marks.verdict(projectID, distinctID, seq) == DropData
}
