// Package mutation deletes rows of a table in ClickHouse.
//
// ClickHouse deletes rows by a mutation, which rewrites parts in the background, one
// mutation after the other, and tries again without end after a failure such as a full
// disk. system.mutations shows its state.
//
// Delete starts a mutation and waits for it, and not for those of others. Its condition has
// a constant that is derived from a key; ClickHouse keeps it in the text of the command, so
// the mutation is found again. A deletion that is repeated after an error, also by another
// process, waits for the unfinished mutation with its key and starts no second one. Two
// processes that begin at the same moment may start one each, which costs time only.
package mutation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
	"github.com/guidonhq/guidon/core/fault"
)

// ErrUnfinished is the error of a deletion that ClickHouse has not finished in time. It
// goes on in ClickHouse.
var ErrUnfinished error = fault.New(fault.Unavailable, "events_deletion_unfinished", "ClickHouse has not deleted the events yet.")

// Deleter deletes rows of one table. It is safe for concurrent use.
type Deleter struct {
	client *wire.Client
	table  string

	mu sync.Mutex // held from the search for a mutation to the start of another one

	columnsMu sync.Mutex
	columns   string // of system.mutations, "" before they are read
}

// New returns a Deleter of a table in the database of c. The name of the table is used
// without quotes.
func New(c *wire.Client, table string) *Deleter { return &Deleter{client: c, table: table} }

// Delete deletes the rows of a condition and returns when ClickHouse has rewritten their
// parts. With an unfinished mutation of the same key it waits for that one instead. It fails
// with a *wire.Error that has the reason when the mutation, or one before it, fails; with
// ErrUnfinished at the deadline of ctx; and without having started anything when
// system.mutations cannot be read.
func (d *Deleter) Delete(ctx context.Context, key, condition string) error {
	return d.run(ctx, key, condition, false)
}

// DeleteOnce is Delete with a key that is used for one deletion only: a mutation of the key
// that has finished since an earlier attempt is the deletion.
func (d *Deleter) DeleteOnce(ctx context.Context, key, condition string) error {
	return d.run(ctx, key, condition, true)
}

func (d *Deleter) run(ctx context.Context, key, condition string, once bool) error {
	tag := tagOf(key)
	before, err := d.start(ctx, tag, condition, once)
	if err != nil {
		return err
	}
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		list, err := d.list(ctx, tag)
		if err == nil {
			var done bool
			if done, err = outcome(list, before); done {
				return err
			}
		}
		if err == nil {
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-time.After(pause):
				continue
			}
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return ErrUnfinished
		}
		return err
	}
}

// Check fails when system.mutations cannot be read, and with the reason of a mutation of the
// table that fails.
func (d *Deleter) Check(ctx context.Context) error {
	list, err := d.list(ctx, "")
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].reason != "" {
			return list[i].failure()
		}
	}
	return nil
}

// start starts a mutation, unless there is an unfinished one with its tag; with once, also
// unless there is a finished one. It returns the finished ones that are not the deletion.
func (d *Deleter) start(ctx context.Context, tag, condition string, once bool) (before map[string]bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list, err := d.list(ctx, tag)
	if err != nil {
		return nil, err
	}
	before = map[string]bool{}
	for i := range list {
		switch m := &list[i]; {
		case m.own && (once || !m.done):
			return before, nil
		case m.own:
			before[m.id] = true
		}
	}
	return before, d.client.Exec(ctx, "ALTER TABLE "+d.table+" DELETE WHERE ("+condition+") AND '"+tag+"' != ''", nil, nil)
}

// outcome reports whether the deletion has ended, with its error.
func outcome(list []state, before map[string]bool) (ended bool, err error) {
	open, finished := false, false
	var failure error
	for i := range list {
		m := &list[i]
		switch {
		case m.own && m.done:
			finished = finished || !before[m.id]
		case m.own:
			open = true
		}
		if !m.done && m.reason != "" && (failure == nil || m.own) {
			failure = m.failure()
		}
	}
	switch {
	case open:
		return failure != nil, failure
	case !finished:
		return true, &wire.Error{Text: "a deletion of events in ClickHouse was ended before it was done", Reached: true}
	}
	return true, nil
}

// tagOf returns the constant of a key.
func tagOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("guidon:%x", sum[:12])
}

// state is a row of system.mutations.
type state struct {
	id, reason string
	own, done  bool
}

func (m *state) failure() error {
	return &wire.Error{Text: "ClickHouse cannot delete events (mutation " + m.id + "): " + strings.TrimSpace(m.reason), Reached: true}
}

// list returns the unfinished mutations of the table, and all with a tag.
func (d *Deleter) list(ctx context.Context, tag string) (out []state, err error) {
	columns, err := d.readColumns(ctx)
	if err != nil {
		return nil, err
	}
	own := "0"
	if tag != "" {
		own = "position(command, '" + tag + "') > 0"
	}
	err = d.client.Query(ctx, "SELECT mutation_id, "+columns+", toInt64(is_done), toInt64("+own+") FROM system.mutations WHERE database = currentDatabase() AND table = '"+
		d.table+"' AND (NOT is_done OR "+own+")", func(r *wire.Reader) error {
		out = append(out, state{id: r.String(), reason: r.String(), done: r.Int() != 0, own: r.Int() != 0})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read system.mutations: %w", err)
	}
	return out, nil
}
