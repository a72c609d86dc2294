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
	// signInInterval is the time for which the failed uses of keys of one client are one
	// entry.
	signInInterval = time.Minute
	// maxSignIns bounds the clients with an entry of their own in that time.
	maxSignIns = 50
)

// SignInFailed is the activity of keys that were refused.
const SignInFailed = "sign_in_failed"

// SignIns counts the refused uses of personal and secret keys between Start and Stop,
// and adds them to the log: in each minute one entry for a client and a reason, and one
// for all clients beyond the first fifty. So a flood of wrong keys makes a bounded
// number of entries. Keys are not part of them. Its methods are safe for concurrent use.
type SignIns struct {
	log     *Log
	logger  *zap.Logger
	service retry.Service

	mu     sync.Mutex
	counts map[signIn]*signInCount
	others int64
}

type signIn struct{ client, code string }

type signInCount struct {
	count       int64
	agent       string // of the first one
	first, last time.Time
}

// NewSignIns returns SignIns that have not started.
func NewSignIns(l *Log, logger *zap.Logger) *SignIns {
	return &SignIns{log: l, logger: logger.Named("activity"), counts: map[signIn]*signInCount{}}
}

// Start begins to add entries.
func (s *SignIns) Start(context.Context) error {
	s.service.Start()
	s.service.Every(signInInterval, s.Flush)
	return nil
}

// Stop writes the remaining counts.
func (s *SignIns) Stop(ctx context.Context) error {
	err := s.service.Stop(ctx)
	s.Flush(ctx)
	return err
}

// Add counts a refused key.
func (s *SignIns) Add(f web.FailedKey) {
	now := time.Now().UTC()
	s.mu.Lock()
	defer s.mu.Unlock()
	key := signIn{f.Client, f.Code}
	c := s.counts[key]
	if c == nil {
		if len(s.counts) == maxSignIns {
			s.others++
			return
		}
		c = &signInCount{agent: f.UserAgent, first: now}
		s.counts[key] = c
	}
	c.count++
	c.last = now
}

// Flush adds the counts to the log. Counts that cannot be written are dropped with
// a line in the log of the server.
func (s *SignIns) Flush(ctx context.Context) {
	s.mu.Lock()
	counts, others := s.counts, s.others
	s.counts, s.others = map[signIn]*signInCount{}, 0
	s.mu.Unlock()
	for k, c := range counts {
		s.add(ctx, k, c)
	}
	if others > 0 {
		s.add(ctx, signIn{"", "other_clients"}, &signInCount{count: others, first: time.Now().UTC(), last: time.Now().UTC()})
	}
}

func (s *SignIns) add(ctx context.Context, k signIn, c *signInCount) {
	e := (&Event{Scope: PersonalKey, Activity: SignInFailed, Name: k.code}).entry(nil)
	e.Client, e.UserAgent = k.client, c.agent
	e.Detail.Trigger = &Trigger{JobType: SignInFailed, JobID: k.code, Payload: map[string]any{
		"count": c.count, "first": c.first.Format(time.RFC3339), "last": c.last.Format(time.RFC3339),
	}}
	if err := s.log.Add(ctx, e); err != nil {
		s.logger.Warn("activity log write failed: failed sign-ins", zap.String("client", k.client), zap.Int64("count", c.count), zap.Error(err))
	}
}
