package email

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
)

// Bounds of the queue.
const (
	maxQueued = 1000
	// maxConnections bounds the attempts at once.
	maxConnections = 4
	firstPause     = time.Second
	longestPause   = 2 * time.Minute
	// warnEvery is the least time between two log lines about attempts that are repeated.
	warnEvery = 10 * time.Second
)

// MaxAge is the time in which an e-mail is tried.
const MaxAge = 15 * time.Minute

// Kinds of e-mail, for the log and the metrics.
const (
	KindInvitation = "invitation"
	KindReset      = "reset"
)

var (
	// ErrOff is the error of Queue without an SMTP server.
	ErrOff = errors.New("no SMTP server is configured")
	// ErrFull is the error of Queue when too many e-mails wait, and when the server stops.
	ErrFull = errors.New("too many e-mails wait")

	errStopped = errors.New("the server stops")
)

// Job is an e-mail to send.
type Job struct {
	Kind string
	// Lifetime limits how long the job is retried. 0, or more than MaxAge, means MaxAge.
	Lifetime time.Duration
	// Make returns the message. It is called before the first attempt, and again if it
	// fails. A message without an address is not sent and not counted.
	Make func(ctx context.Context) (Message, error)
	// Done receives the result once: nil if the SMTP server accepted the message. It may be
	// nil, and is not called for a message without an address.
	Done func(ctx context.Context, err error)
}

// Sender queues e-mails and sends them. Its methods are safe for concurrent use.
type Sender struct {
	site    string
	server  server
	service retry.Service
	metrics metrics
	log     *zap.Logger
	places  chan struct{} // one for each attempt

	mu     sync.Mutex
	queued int
	warned time.Time
}

// New returns the Sender of a valid cfg for the server at site, which is a URL without a slash
// at the end. reg may be nil.
func New(cfg Config, site string, log *zap.Logger, reg prometheus.Registerer) (*Sender, error) {
	s := &Sender{site: site, server: server{cfg}, log: log.Named("email"), places: make(chan struct{}, maxConnections)}
	var err error
	s.metrics, err = newMetrics(reg, s)
	return s, err
}

// Enabled reports whether there is an SMTP server. A nil Sender has none.
func (s *Sender) Enabled() bool { return s != nil && s.server.cfg.Enabled() }

// Link returns the URL of a page of the console.
func (s *Sender) Link(page string) string { return s.site + page }

// Start begins to send.
func (s *Sender) Start(context.Context) error {
	s.service.Start()
	return nil
}

// Stop gives up the e-mails that wait for another attempt, and waits for the attempts under
// way until ctx ends.
func (s *Sender) Stop(ctx context.Context) error { return s.service.Stop(ctx) }

// Queue queues an e-mail and returns at once. It fails with ErrOff and ErrFull.
func (s *Sender) Queue(j Job) error {
	if !s.Enabled() {
		return ErrOff
	}
	if !s.add(1) {
		s.failed(j, "", ErrFull)
		return ErrFull
	}
	if !s.service.Go(func(drainCtx, killCtx context.Context) {
		defer s.add(-1)
		s.run(drainCtx, killCtx, j)
	}) {
		s.add(-1)
		s.failed(j, "", errStopped)
		return ErrFull
	}
	return nil
}

// add changes the number of queued e-mails. It returns false if there are too many.
func (s *Sender) add(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queued+n > maxQueued {
		return false
	}
	s.queued += n
	return true
}

// waiting returns the number of queued e-mails.
func (s *Sender) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued
}

// run tries a job until it succeeds or is given up. An attempt ends with killCtx, the pauses
// between attempts with drainCtx.
func (s *Sender) run(drainCtx, killCtx context.Context, j Job) {
	age := MaxAge
	if j.Lifetime > 0 {
		age = min(age, j.Lifetime)
	}
	ctx, cancel := context.WithTimeout(killCtx, age)
	defer cancel()
	var m Message
	pauses := retry.Backoff{Min: firstPause, Max: longestPause}
	for {
		err := s.attempt(ctx, j, &m)
		switch {
		case err == nil && m.To == "":
			return
		case err == nil:
			s.sent(killCtx, j)
			return
		case errors.As(err, new(permanent)) || ctx.Err() != nil:
			s.giveUp(killCtx, j, m.To, err)
			return
		}
		s.repeated(j, err)
		pause := pauses.Next()
		if end, _ := ctx.Deadline(); time.Until(end) < pause {
			s.giveUp(killCtx, j, m.To, err)
			return
		}
		if !retry.Sleep(drainCtx, pause) {
			s.giveUp(killCtx, j, m.To, errors.Join(errStopped, err))
			return
		}
	}
}

// attempt makes the message unless it is made, and sends it.
func (s *Sender) attempt(ctx context.Context, j Job, m *Message) error {
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if m.To == "" {
		made, err := j.Make(ctx)
		if err != nil {
			return err
		}
		if *m = made; m.To == "" {
			return nil
		}
		m.id = rand.Text()
	}
	return s.server.send(ctx, *m)
}

func (s *Sender) sent(ctx context.Context, j Job) {
	s.metrics.emails.WithLabelValues(j.Kind, "sent").Inc()
	s.log.Info("e-mail sent", zap.String("kind", j.Kind))
	if j.Done != nil {
		j.Done(ctx, nil)
	}
}

func (s *Sender) giveUp(ctx context.Context, j Job, to string, err error) {
	s.failed(j, to, err)
	if j.Done != nil {
		j.Done(ctx, err)
	}
}

func (s *Sender) failed(j Job, to string, err error) {
	s.metrics.emails.WithLabelValues(j.Kind, "failed").Inc()
	s.log.Error("e-mail not sent", zap.String("kind", j.Kind), zap.String("to", to), zap.Error(err))
}

// repeated counts a failed attempt that is repeated, and logs some.
func (s *Sender) repeated(j Job, err error) {
	s.metrics.emails.WithLabelValues(j.Kind, "retried").Inc()
	s.mu.Lock()
	log := time.Since(s.warned) >= warnEvery
	if log {
		s.warned = time.Now()
	}
	waiting := s.queued
	s.mu.Unlock()
	if log {
		s.log.Warn("e-mail attempt failed; retrying", zap.String("kind", j.Kind), zap.Int("waiting", waiting), zap.Error(err))
	}
}
