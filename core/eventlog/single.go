package eventlog

import (
	"context"

	"github.com/guidonhq/guidon/core/journal"
)

// single is the journal of one node as a log with one partition.
type single struct{ j journal.Journal }

// Single returns j as a log with one partition. Its partition is j itself, and Close
// closes j.
func Single(j journal.Journal) Log { return single{j} }

func (s single) Partitions() int { return 1 }

func (s single) Append(ctx context.Context, parts []Part) error {
	for _, p := range parts {
		if _, err := s.j.Append(ctx, p.Data); err != nil {
			return err
		}
	}
	return nil
}

func (s single) Partition(int, int64) Partition { return s.j }

func (s single) Register(ctx context.Context, reader string, from journal.Start) error {
	_, err := s.j.Register(ctx, reader, from)
	return err
}

func (s single) Close(ctx context.Context) error { return s.j.Close(ctx) }
