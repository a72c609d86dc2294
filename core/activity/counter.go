package activity

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/core/web"
)

const (
	// countInterval is the time for which equal things are one entry.
	countInterval = time.Minute
	// maxCounted bounds the entries of one activity of one organization in that time.
	maxCounted = 50
	// otherClients is the reason of the entry for all things beyond those.
	otherClients = "other_clients"
)

// Activities that are counted.
const (
	SignInFailed   = "sign_in_failed"           // a key, a password or a link was refused
	ResetRequested = "password_reset_requested" // a link that sets a password was requested
	EmailFailed    = "email_failed"             // an e-mail was given up
)

// Counted identifies a frequent activity that unauthenticated clients can cause.
type Counted struct {
	Activity       string
	Scope          Scope
	ItemID, Name   string // of the item; "": none
	OrganizationID string // "": the server
	Reason         string // such as the code of a refusal or the kind of an e-mail
	Client         string // the address of the client
}

// Counter counts things between Start and Stop and adds them to the log: in each minute one
// entry for equal things, at most fifty for an activity of an organization or of the server,
// and one for all others of it. The number of entries a minute is bounded, and activities of
// no organization do not displace those of an organization. Keys, links and passwords are
// not part of them.
// Its methods are safe for concurrent use.
type Counter struct {
	log     *Log
	logger  *zap.Logger
	service retry.Service

	mu     sync.Mutex
	counts map[Counted]*count
	sizes  map[bound]int // of counts
}

// bound names the entries that maxCounted bounds.
type bound struct{ activity, organization string }

type count struct {
	count       int64
	agent       string // of the first one
	first, last time.Time
}

// NewCounter returns a Counter that has not started.
func NewCounter(l *Log, logger *zap.Logger) *Counter {
	return &Counter{log: l, logger: logger.Named("activity"), counts: map[Counted]*count{}, sizes: map[bound]int{}}
}

// Start begins to add entries.
func (s *Counter) Start(context.Context) error {
	s.service.Start()
	s.service.Every(countInterval, s.Flush)
	return nil
}

// Stop writes the remaining counts.
func (s *Counter) Stop(ctx context.Context) error {
	err := s.service.Stop(ctx)
	s.Flush(ctx)
	return err
}

// AddKey counts a refused key.
func (s *Counter) AddKey(f web.FailedKey) {
	s.Add(Counted{Activity: SignInFailed, Scope: PersonalKey, Name: f.Code, Reason: f.Code, Client: f.Client}, f.UserAgent)
}

// Add counts one thing. agent is the User-Agent of the client.
func (s *Counter) Add(k Counted, agent string) {
	now := time.Now().UTC()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts[k]
	if c == nil {
		of := bound{k.Activity, k.OrganizationID}
		if s.sizes[of] >= maxCounted {
			k, agent = others(k), ""
			c = s.counts[k]
		}
		if c == nil {
			c = &count{agent: agent, first: now}
			s.counts[k] = c
			s.sizes[of]++
		}
	}
	c.count++
	c.last = now
}

// others returns the key of all things beyond the first ones.
func others(k Counted) Counted {
	o := Counted{Activity: k.Activity, Scope: k.Scope, OrganizationID: k.OrganizationID, Reason: otherClients}
	if k.Activity == SignInFailed {
		o.Name = otherClients
	}
	return o
}

// Flush adds the counts to the log. Counts that cannot be written are dropped with
// a line in the log of the server.
func (s *Counter) Flush(ctx context.Context) {
	s.mu.Lock()
	counts := s.counts
	s.counts, s.sizes = map[Counted]*count{}, map[bound]int{}
	s.mu.Unlock()
	for k, c := range counts {
		s.write(ctx, k, c)
	}
}

func (s *Counter) write(ctx context.Context, k Counted, c *count) {
	e := (&Event{Scope: k.Scope, ItemID: k.ItemID, Activity: k.Activity, Name: k.Name, OrganizationID: k.OrganizationID}).entry(nil)
	e.Client, e.UserAgent = k.Client, c.agent
	e.Detail.Trigger = &Trigger{JobType: k.Activity, JobID: k.Reason, Payload: map[string]any{
		"count": c.count, "first": c.first.Format(time.RFC3339), "last": c.last.Format(time.RFC3339),
	}}
	if err := s.log.Add(ctx, e); err != nil {
		s.logger.Warn("activity log write failed: "+k.Activity, zap.String("client", k.Client), zap.Int64("count", c.count), zap.Error(err))
	}
}
