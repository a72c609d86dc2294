package app

import (
	"context"
	"io"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/sdk"
)

// followInterval is the pause between two reads of a following tail.
const followInterval = 200 * time.Millisecond

// Tail selects the stored events to print.
type Tail struct {
	Project int64
	Event   string // only events of this name; empty: all
	Lines   int    // number of stored events to begin with
	Follow  bool   // go on until ctx ends
}

// TailEvents prints stored events to out, one line of canonical JSON each, the
// newest last. A server may be running on the same database.
func TailEvents(ctx context.Context, cfg Config, t Tail, out io.Writer) error {
	d, err := openDB(ctx, cfg)
	if err != nil {
		return err
	}
	return closing(d, t.print(ctx, events.New(cfg.Events, d, zap.NewNop(), nil), out))
}

func (t Tail) print(ctx context.Context, store *events.Service, out io.Writer) error {
	last, err := store.Last(ctx)
	if err != nil {
		return err
	}
	if t.Lines > 0 {
		newest, _, err := store.List(ctx, t.Project, events.Filter{Event: t.Event}, t.Lines)
		if err != nil {
			return err
		}
		slices.Reverse(newest)
		if err := t.write(out, newest...); err != nil {
			return err
		}
	}
	for t.Follow && ctx.Err() == nil {
		more, err := store.Tail(ctx, t.Project, last, 1000)
		if err != nil && ctx.Err() == nil {
			return err
		}
		for _, e := range more {
			last = e.Row
			if err := t.write(out, e.Event); err != nil {
				return err
			}
		}
		if len(more) == 0 {
			pause(ctx, followInterval)
		}
	}
	return nil
}

func (t Tail) write(out io.Writer, list ...sdk.Event) error {
	for i := range list {
		if t.Event != "" && list[i].Name != t.Event {
			continue
		}
		if _, err := out.Write(append(list[i].AppendJSON(nil), '\n')); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
