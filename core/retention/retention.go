// Package retention deletes events by their age: per project, and by event name.
//
// The age of an event is that of its timestamp. Of the rules that concern an event the
// most specific one wins: that of its name, else that of its project, else the setting
// events.retention. 0 keeps for ever.
//
// A run deletes the events of each project whose time is over, the oldest first, in
// transactions of a few hundred rows. Between two it sleeps for twice the time that one
// took, so that the worker has the database for most of the time, and it waits while the
// write-ahead log of SQLite is long. Deletions do not run at a lower priority of the
// system: a thread that holds the lock of the database would hold it for longer.
//
// A run is a row from before its first deletion. The counts of actions are corrected in
// the transaction that closes the row, once a run: until then they include deleted
// events. A run that a stop interrupts goes on after the next start.
//
// Events that are older than their project keeps them are not stored when they arrive.
// Sinks receive them: retention concerns the event store only, not persons, not the
// journal, and not what sinks hold.
package retention

import (
	"maps"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/events"
)

// Rules are the rules of a project.
type Rules struct {
	// Keep is the age at which events are deleted, 0 for never; nil is the setting of
	// the server.
	Keep *time.Duration
	// Events are the ages by event name; they win over Keep.
	Events map[string]time.Duration
}

// policy is the rules of a project with the setting of the server applied.
type policy struct {
	fallback time.Duration
	events   map[string]time.Duration
}

func (r Rules) policy(setting time.Duration) policy {
	p := policy{setting, r.Events}
	if r.Keep != nil {
		p.fallback = *r.Keep
	}
	return p
}

// keep returns the age at which events of a name are deleted, 0 for never.
func (p policy) keep(event string) time.Duration {
	if d, ok := p.events[event]; ok {
		return d
	}
	return p.fallback
}

// shortest returns the shortest age of these names, of all for nil; 0 for never.
func (p policy) shortest(names []string) time.Duration {
	var low time.Duration
	add := func(d time.Duration) {
		if d > 0 && (low == 0 || d < low) {
			low = d
		}
	}
	if names == nil {
		add(p.fallback)
		for _, d := range p.events {
			add(d)
		}
	}
	for _, name := range names {
		add(p.keep(name))
	}
	return low
}

// expiries returns what to delete at a time. One index over all names is read in the
// order of time, which deletes neighbours on disk together, unless some events are kept
// longer than the others: then each name is read on its own. names lists the names.
func (p policy) expiries(projectID int64, now time.Time, names func() ([]string, error)) ([]events.Expiry, error) {
	var out []events.Expiry
	add := func(event string, keep time.Duration) {
		if keep > 0 {
			out = append(out, events.Expiry{ProjectID: projectID, Event: event, Before: now.Add(-keep)})
		}
	}
	longer := false
	for _, name := range slices.Sorted(maps.Keys(p.events)) {
		d := p.events[name]
		longer = longer || d == 0 || d > p.fallback
		if p.fallback == 0 || d != p.fallback {
			add(name, d)
		}
	}
	if p.fallback == 0 {
		return out, nil
	}
	if !longer {
		add("", p.fallback)
		return out, nil
	}
	all, err := names()
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		if d, own := p.events[name]; !own || d == p.fallback {
			add(name, p.fallback)
		}
	}
	return out, nil
}
