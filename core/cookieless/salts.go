package cookieless

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/retry"
)

// A salt is in use from the first moment at which it is its day in some zone until
// late events of its day are no longer expected.
const (
	firstZone = 14 * time.Hour // the zone in which a day begins first
	lifetime  = 86 * time.Hour // of a salt after the begin of its day in UTC
	ahead     = 24 * time.Hour // salts are made that much before they are needed
)

// How often salts are made and deleted, and how soon that is tried again.
const (
	refreshInterval = 10 * time.Minute
	retryInterval   = 2 * time.Second
)

// saltBytes is the length of a salt.
const saltBytes = 16

const dayFormat = time.DateOnly

// Salts are the salts in use. Its methods are safe for concurrent use.
type Salts struct {
	store   *store
	log     *zap.Logger
	now     func() time.Time
	byDay   atomic.Pointer[map[string][]byte]
	zones   zones
	service retry.Service
}

// NewSalts returns the salts in the database, not loaded yet. A nil log disables
// logging, a nil now is time.Now.
func NewSalts(d *db.DB, log *zap.Logger, now func() time.Time) *Salts {
	if log == nil {
		log = zap.NewNop()
	}
	if now == nil {
		now = time.Now
	}
	return &Salts{store: &store{d}, log: log.Named("cookieless"), now: now}
}

// Start loads the salts and renews them until Stop. Without the database it goes
// on; the salts are loaded when it is back.
func (s *Salts) Start(ctx context.Context) error {
	s.service.Start()
	wait := s.renew(ctx)
	s.service.Go(func(ctx, _ context.Context) {
		for retry.Sleep(ctx, wait) {
			wait = s.renew(ctx)
		}
	})
	return nil
}

// Stop ends the renewal.
func (s *Salts) Stop(ctx context.Context) error { return s.service.Stop(ctx) }

// renew refreshes the salts and returns the time until the next refresh.
func (s *Salts) renew(ctx context.Context) time.Duration {
	if err := s.Refresh(ctx); err != nil {
		if ctx.Err() == nil {
			s.log.Warn("salts of visitors without cookies not renewed", zap.Error(err))
		}
		return retryInterval
	}
	return refreshInterval
}

// Refresh makes the salts of the days in use and of the next one, deletes older
// ones, and loads them. Nodes that make the salt of a day at once keep the same one.
func (s *Salts) Refresh(ctx context.Context) error {
	now := s.now()
	var rows []saltRow
	for day := midnight(now.Add(-lifetime)).AddDate(0, 0, 1); day.Before(now.Add(firstZone + ahead)); day = day.AddDate(0, 0, 1) {
		salt := make([]byte, saltBytes)
		_, _ = rand.Read(salt)
		rows = append(rows, saltRow{Day: day.Format(dayFormat), Salt: salt})
	}
	byDay, err := s.store.renew(ctx, rows)
	if err != nil {
		return err
	}
	s.byDay.Store(&byDay)
	return nil
}

func midnight(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// Identify returns the ids of a visitor: false without an address, and for a day
// whose salt does not exist yet or any more.
func (s *Salts) Identify(v *Visitor) (Identity, bool) {
	byDay := s.byDay.Load()
	if byDay == nil || !v.Addr.IsValid() {
		return Identity{}, false
	}
	local := v.At.In(s.zones.find(v.Zone))
	salt, ok := (*byDay)[local.Format(dayFormat)]
	year, month, day := local.Date()
	begin := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	now := s.now()
	if !ok || now.Before(begin.Add(-firstZone)) || !now.Before(begin.Add(lifetime)) {
		return Identity{}, false
	}
	return derive(salt, v, time.Date(year, month, day, 0, 0, 0, 0, local.Location())), true
}
