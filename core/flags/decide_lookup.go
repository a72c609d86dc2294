package flags

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// The kinds of lookups, each with its own pause after a failure.
const (
	lookPerson = iota
	lookGroup
	lookLists
	lookHashKeys
)

var lookNames = [...]string{lookPerson: "person", lookGroup: "group", lookLists: "cohort", lookHashKeys: "hash_key"}

// pause keeps requests away from a store that has just failed.
type pause struct{ until atomic.Int64 }

// read reads everything the run wants and has not read yet, and reports
// whether there was anything. Identifiers are handed out as copies, because
// who is asked may keep them and the request's own memory is used again.
func (d *Decider) read(ctx context.Context, projectID int64, r *run) bool {
	found := false
	if r.person.wanted {
		found = true
		d.readSubject(ctx, lookPerson, r, person, func(ctx context.Context) ([]byte, bool, error) {
			return d.lookups.People.Properties(ctx, projectID, clone(r.person.id))
		})
	}
	for i := range r.groups {
		if !r.groups[i].wanted {
			continue
		}
		found = true
		d.readSubject(ctx, lookGroup, r, int32(i), func(ctx context.Context) ([]byte, bool, error) {
			return d.lookups.People.GroupProperties(ctx, projectID, r.set.groups[i].name, clone(r.groups[i].id))
		})
	}
	if r.listsWant {
		found = true
		d.readLists(ctx, projectID, r)
	}
	if r.hashWant {
		found = true
		d.readHashKeys(ctx, projectID, r)
	}
	if r.plugins.open() {
		found = true
		if r.plugins.until.IsZero() {
			r.plugins.until = time.Now().Add(d.patience(ctx))
		}
		ctx, cancel := context.WithDeadline(ctx, r.plugins.until)
		r.plugins.ask(ctx)
		cancel()
	}
	return found
}

// patience is how long plugins may take, all calls of a request together: what the config says, or a quarter of
// what is left of the request when that is less.
func (d *Decider) patience(ctx context.Context) time.Duration {
	wait := d.cfg.PluginTimeout
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, max(0, time.Until(end)/4))
	}
	return wait
}

func (d *Decider) readSubject(ctx context.Context, kind int, r *run, at int32, get func(ctx context.Context) ([]byte, bool, error)) {
	s := r.subject(at)
	s.wanted = false
	s.stored = d.look(ctx, kind, func(ctx context.Context) error {
		raw, found, err := get(ctx)
		if err != nil || !found || len(raw) == 0 {
			return err
		}
		v, err := s.parser.ParseBytes(raw)
		if err != nil {
			return err
		}
		o, err := v.Object()
		if err == nil {
			r.fill(s, r.schema(at), fromStore, o)
		}
		return err
	})
}

func (d *Decider) readLists(ctx context.Context, projectID int64, r *run) {
	r.listsWant = false
	r.lists = d.look(ctx, lookLists, func(ctx context.Context) error {
		ids, err := d.lookups.Memberships.StaticCohorts(ctx, projectID, clone(r.person.id))
		r.inLists = append(r.inLists[:0], ids...)
		return err
	})
}

func (d *Decider) readHashKeys(ctx context.Context, projectID int64, r *run) {
	r.hashWant = false
	anonymous := r.anonymous
	if r.trace != nil {
		anonymous = "" // an explanation keeps nothing
	}
	r.hashKeys = d.look(ctx, lookHashKeys, func(ctx context.Context) (err error) {
		r.hashKey, err = d.lookups.HashKeys.HashKeys(ctx, projectID, clone(r.person.id), clone(anonymous), r.set.continuous)
		return err
	})
}

// look reads something stored within its time. After a failure nobody asks
// again for a while: flags that need it are left out at once.
func (d *Decider) look(ctx context.Context, kind int, get func(ctx context.Context) error) reading {
	start := time.Now()
	p := &d.pauses[kind]
	if until := p.until.Load(); until != 0 && start.UnixNano() < until {
		d.meter.looked(kind, "paused", 0)
		return unreadable
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.LookupTimeout)
	defer cancel()
	err := get(ctx)
	took := time.Since(start)
	if err == nil {
		p.until.Store(0)
		d.meter.looked(kind, "ok", took)
		return read
	}
	p.until.Store(time.Now().Add(d.cfg.LookupPause).UnixNano())
	d.meter.looked(kind, "failed", took)
	d.log.Warn("flags that need stored data are left out: it cannot be read",
		zap.String("data", lookNames[kind]), zap.Duration("took", took), zap.Error(err))
	return unreadable
}
