package flags

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// People answers what is stored about persons and groups.
type People interface {
	// Properties returns the stored properties of a person as a JSON object,
	// and whether there is such a person. The text is not changed.
	Properties(ctx context.Context, projectID int64, distinctID string) ([]byte, bool, error)
	// GroupProperties does the same for a group.
	GroupProperties(ctx context.Context, projectID int64, groupType, groupKey string) ([]byte, bool, error)
}

// Memberships answers on which lists people are.
type Memberships interface {
	// StaticCohorts returns the ids of the static cohorts that list the
	// person behind a distinct id.
	StaticCohorts(ctx context.Context, projectID int64, distinctID string) ([]int64, error)
}

// HashKeys remembers under which identifier people are bucketed, for flags
// that must not change when somebody logs in.
type HashKeys interface {
	// HashKeys returns the identifiers kept for the persons behind distinctID
	// and anonymousID, by flag key; where both have one, that of distinctID.
	// When anonymousID is not empty it first keeps it for those of the keys
	// that have none yet; that this could not be done is no error.
	HashKeys(ctx context.Context, projectID int64, distinctID, anonymousID string, flagKeys []string) (map[string]string, error)
}

// Lookups is whom a Decider asks for what is stored. A nil one knows nothing,
// and what it would know does not exist.
type Lookups struct {
	People      People
	Memberships Memberships
	HashKeys    HashKeys
	Matchers    Matchers
}

// Decider answers which flags are on for whom, from the snapshots in memory
// and, when a flag needs it, from what is stored about a person or a group.
// All methods may be called from any number of goroutines.
type Decider struct {
	cfg       DecideConfig
	snapshots *Snapshots
	lookups   Lookups
	now       func() time.Time
	log       *zap.Logger
	meter     *decideMeter
	pauses    [4]pause
}

// NewDecider returns a decider over snapshots. A nil log is silent, a nil reg
// counts nothing.
func NewDecider(cfg DecideConfig, snapshots *Snapshots, lookups Lookups, log *zap.Logger, reg prometheus.Registerer) (*Decider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if log == nil {
		log = zap.NewNop()
	}
	return &Decider{cfg: cfg, snapshots: snapshots, lookups: lookups, now: time.Now, log: log.Named("flags"), meter: newDecideMeter(reg)}, nil
}

// Decide decides the flags of a project. A flag that cannot be computed has
// Failed set; there is no other error.
func (d *Decider) Decide(ctx context.Context, projectID int64, q *Question) []Decision {
	r := newRun(d.snapshots.Set(projectID), q.DistinctID, d.now())
	defer r.release()
	r.ask(q)
	r.choose(q.FlagKeys, false)
	d.settle(ctx, projectID, r)
	return r.decisions()
}

// Explain is Decide with the whole way to each value. Without FlagKeys it
// explains the inactive flags too. It keeps nothing about the person.
func (d *Decider) Explain(ctx context.Context, projectID int64, q *Question) []*Explanation {
	r := newRun(d.snapshots.Set(projectID), q.DistinctID, d.now())
	defer r.release()
	r.trace = newTracer()
	r.ask(q)
	r.choose(q.FlagKeys, true)
	d.settle(ctx, projectID, r)
	return r.explanations()
}

// settle computes until nothing waits any more: it reads what flags turned
// out to need, everything at most once, and computes those flags again.
func (d *Decider) settle(ctx context.Context, projectID int64, r *run) {
	d.begin(r)
	if r.hashWant {
		d.readHashKeys(ctx, projectID, r)
	}
	for !r.compute() {
		if !d.read(ctx, projectID, r) {
			break
		}
	}
	d.meter.decided(r)
}

// begin marks what nobody can be asked for as read: it does not exist. The id
// before login is kept at once, whether this request needs it or not.
func (d *Decider) begin(r *run) {
	if d.lookups.People == nil {
		r.person.stored = read
		for i := range r.groups {
			r.groups[i].stored = read
		}
	}
	if d.lookups.Memberships == nil {
		r.lists = read
	}
	if d.lookups.HashKeys == nil {
		r.hashKeys = read
	} else if r.anonymous != "" && len(r.set.continuous) > 0 && r.trace == nil {
		r.hashWant = true
	}
	r.plugins.matchers, r.plugins.now = d.lookups.Matchers, r.env.Now
}
