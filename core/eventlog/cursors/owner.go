package cursors

import (
	"context"

	"github.com/guidonhq/guidon/core/eventlog/logstate"
	"github.com/guidonhq/guidon/core/journal"
)

// Bounds has the numbers of the records of a partition, as far as this process knows them.
// Its methods may be called from many goroutines at once.
type Bounds interface {
	// Refresh brings the bounds of all partitions of the log up to date.
	Refresh(ctx context.Context) error
	// Bounds returns the numbers before the oldest record that is kept, and of the newest.
	Bounds() (before, newest uint64)
}

// position returns the begin or the end of a partition.
func position(b Bounds, from journal.Start) journal.Position {
	before, newest := b.Bounds()
	if from == journal.End {
		return journal.Position{Seq: newest}
	}
	return journal.Position{Seq: before}
}

// Owner has the cursors of a partition under the token of a lease.
type Owner struct {
	Store     *Store
	Log       string
	Partition int
	Token     int64
	Bounds    Bounds
}

func (o Owner) key(reader string) Key { return Key{o.Log, o.Partition, reader} }

// Register is that of eventlog.Partition. Begin is the oldest record that is kept.
func (o Owner) Register(ctx context.Context, reader string, from journal.Start) (journal.Position, error) {
	if err := o.Bounds.Refresh(ctx); err != nil {
		return journal.Position{}, err
	}
	return o.Store.Register(ctx, o.key(reader), o.Token, position(o.Bounds, from))
}

// Commit is that of eventlog.Partition. It joins the transaction in ctx.
func (o Owner) Commit(ctx context.Context, reader string, at journal.Position) error {
	needed := at.Seq
	if at.Index > 0 {
		needed++ // its first events are done
	}
	if _, newest := o.Bounds.Bounds(); newest < needed {
		if err := o.Bounds.Refresh(ctx); err != nil {
			return err
		}
		if _, newest := o.Bounds.Bounds(); newest < at.Seq {
			return logstate.ErrAhead
		}
	}
	return o.Store.Commit(ctx, o.key(reader), o.Token, at)
}

// Skipped excludes the records through a number from the lag of a reader that has nothing
// to do in them, before its cursor is committed.
func (o Owner) Skipped(reader string, through uint64) { o.Store.Skip(o.key(reader), through) }

// Unregister is that of eventlog.Partition.
func (o Owner) Unregister(ctx context.Context, reader string) error {
	return o.Store.Unregister(ctx, o.key(reader), o.Token)
}
