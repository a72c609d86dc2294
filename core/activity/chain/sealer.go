package chain

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
)

const (
	// pollInterval is the time between two looks for entries. Changes that come
	// together share a transaction, and do not wait for it.
	pollInterval = 500 * time.Millisecond
	// headInterval is the time between two lines with the head in the log of the server.
	headInterval = time.Hour
)

// Sealer seals entries between Start and Stop.
type Sealer struct {
	chain   *Chain
	log     *zap.Logger
	service retry.Service
	failed  bool // the last attempt

	head     atomic.Pointer[Head] // as of the last seal by this process, or of a poll
	unsealed atomic.Int64
	logged   Head
}

// NewSealer returns a Sealer that has not started. reg, which may be nil, shows the
// number of the newest entry and of those that are not sealed.
func NewSealer(c *Chain, log *zap.Logger, reg prometheus.Registerer) (*Sealer, error) {
	s := &Sealer{chain: c, log: log.Named("activity")}
	s.head.Store(&Head{})
	if reg == nil {
		return s, nil
	}
	for _, g := range []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "guidon_audit_sequence", Help: "Number of the newest sealed entry of the activity log."},
			func() float64 { return float64(s.head.Load().Sequence) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "guidon_audit_unsealed_entries", Help: "Entries of the activity log that no hash covers yet, as of the last look."},
			func() float64 { return float64(s.unsealed.Load()) }),
	} {
		if err := reg.Register(g); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Start begins to seal.
func (s *Sealer) Start(context.Context) error {
	s.service.Start()
	s.service.Go(s.run)
	return nil
}

// Stop seals the remaining entries and waits for the end of the goroutine.
func (s *Sealer) Stop(ctx context.Context) error { return s.service.Stop(ctx) }

func (s *Sealer) run(drainCtx, killCtx context.Context) {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	hourly := time.NewTicker(headInterval)
	defer hourly.Stop()
	s.seal(drainCtx)
	s.logHead()
	for {
		select {
		case <-drainCtx.Done():
			ctx, cancel := context.WithTimeout(killCtx, time.Second)
			s.seal(ctx)
			s.logHead()
			cancel()
			return
		case <-poll.C:
			s.seal(killCtx)
		case <-hourly.C:
			s.logHead()
		}
	}
}

// seal seals everything and reads the head. The first of several failures is logged.
func (s *Sealer) seal(ctx context.Context) {
	if err := s.chain.SealAll(ctx); err != nil {
		s.onError(ctx, err)
		return
	}
	head, err := s.chain.Head(ctx)
	if err != nil {
		s.onError(ctx, err)
		return
	}
	s.failed = false
	s.unsealed.Store(0)
	s.head.Store(&head)
}

func (s *Sealer) onError(ctx context.Context, err error) {
	if n, errCount := s.chain.CountUnsealed(ctx); errCount == nil {
		s.unsealed.Store(n)
	}
	if ctx.Err() == nil && !s.failed {
		s.log.Warn("activity log seal failed", zap.Error(err))
		s.failed = true
	}
}

// logHead logs the head if it has moved since the last time: a copy of the log of the
// server is an anchor.
func (s *Sealer) logHead() {
	if h := *s.head.Load(); h != s.logged && h.Sequence > 0 {
		s.logged = h
		s.log.Info("activity log sealed", zap.Int64("sequence", h.Sequence), zap.String("hash", h.Hash))
	}
}
