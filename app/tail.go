package app

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/propertyfilter"
	"github.com/guidonhq/guidon/sdk"
)

// followInterval is the pause between two reads of a following tail.
const followInterval = 200 * time.Millisecond

// Tail selects the stored events to print.
type Tail struct {
	Project int64
	Event   string // only events of this name; empty: all
	// DistinctID selects events with this distinct id, Person those of all distinct ids
	// that the person with this distinct id has at the start; "" for all.
	DistinctID, Person string
	Properties         string // a JSON list of filters of event properties; "" for none
	Lines              int    // number of stored events to begin with
	Follow             bool   // go on until ctx ends
}

// tailFilter is a Tail with what its texts mean.
type tailFilter struct {
	Tail
	list       events.Filter
	ids        []string // of the person; nil for all
	properties *propertyfilter.All
}

// TailEvents prints stored events to out, one line of canonical JSON each, the
// newest last. A server may be running on the same database.
func TailEvents(ctx context.Context, cfg Config, t Tail, out io.Writer) error {
	d, err := openDB(ctx, cfg)
	if err != nil {
		return err
	}
	filter, err := t.filter(ctx, d)
	if err != nil {
		return closing(d, err)
	}
	store, err := clickhouse.Open(cfg.Events, d, zap.NewNop(), nil)
	if err != nil {
		return closing(d, err)
	}
	return closing(d, filter.print(ctx, store, out))
}

// filter finds the person and compiles the filters of properties.
func (t Tail) filter(ctx context.Context, d *db.DB) (*tailFilter, error) {
	items, err := propertyfilter.Compile(t.Properties, match.Options{Location: time.UTC}, events.EventProperty)
	if err != nil {
		return nil, err
	}
	filters := make([]*match.Filter, len(items))
	for i, item := range items {
		filters[i] = item.Filter
	}
	f := &tailFilter{Tail: t, list: events.Filter{Event: t.Event, DistinctID: t.DistinctID, Properties: items}, properties: propertyfilter.NewAll(filters, match.Env{})}
	if t.Person == "" {
		return f, nil
	}
	found, ok, err := persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil).ByDistinctID(ctx, t.Project, t.Person)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("no person has the distinct id %q", t.Person)
	}
	f.ids, f.list.PersonID = found.DistinctIDs, found.UUID
	return f, nil
}

func (t *tailFilter) print(ctx context.Context, store *events.Service, out io.Writer) error {
	last, err := store.Last(ctx)
	if err != nil {
		return err
	}
	if t.Lines > 0 {
		newest, _, err := store.List(ctx, t.Project, t.list, t.Lines)
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

func (t *tailFilter) write(out io.Writer, list ...sdk.Event) error {
	for i := range list {
		if !t.matches(&list[i]) {
			continue
		}
		if _, err := out.Write(append(list[i].AppendJSON(nil), '\n')); err != nil {
			return err
		}
	}
	return nil
}

func (t *tailFilter) matches(ev *sdk.Event) bool {
	return (t.Event == "" || ev.Name == t.Event) && (t.DistinctID == "" || ev.DistinctID == t.DistinctID) &&
		(t.Person == "" || slices.Contains(t.ids, ev.DistinctID)) && (t.Properties == "" || t.properties.Match(ev.Properties))
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
