package notifications

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/sdk"
)

// laneRow is a row of notification_lanes: which process sends to a destination.
type laneRow struct {
	bun.BaseModel `bun:"table:notification_lanes,alias:l"`

	Notifier    string `bun:",pk"`
	Destination string `bun:",pk"`
	Holder      string
	HeldUntil   int64
	PausedUntil int64
	ReservedAt  int64
}

// notifierRateRow is a row of notifier_rates.
type notifierRateRow struct {
	bun.BaseModel `bun:"table:notifier_rates,alias:r"`

	Notifier    string `bun:",pk"`
	Destination string `bun:",pk"`
	NextAt      int64
}

// maxAhead bounds how far ahead the times of a lane and of a rate are; those behind it
// come from a clock that was set back since, and do not hold.
const maxAhead = time.Hour

// claimInLane leases the oldest due notification of a destination for holder, as claim
// does, if no other process sends to the destination and the rate of the notifier
// permits it. Otherwise it returns nil; wait is the time after which the rate permits a
// call by this process, 0 if there is nothing to do. It is for PostgreSQL: the row of
// the lane is locked until the transaction ends, so that processes take turns.
func (s *store) claimInLane(ctx context.Context, l lane, p sdk.NotifierProperties, holder string, lease time.Duration, clock func() time.Time) (
	d *Delivery, wait time.Duration, err error,
) {
	err = s.db.Tx(ctx, func(ctx context.Context) error {
		row, err := s.lockLane(ctx, l)
		if err != nil {
			return err
		}
		now := clock()
		micros := now.UnixMicro()
		if row.isPaused(now) || row.HeldUntil > micros && row.Holder != holder {
			return nil
		}
		if wait, err = s.reserveSend(ctx, row, p, now); err != nil {
			return err
		}
		row.Holder, row.HeldUntil = holder, now.Add(wait+lease).UnixMicro()
		if wait == 0 {
			if d, err = s.claim(ctx, l, holder, now, lease); err != nil {
				return err
			}
			row.ReservedAt = 0
			if d == nil {
				row.HeldUntil = micros
			}
		}
		return s.saveLane(ctx, row)
	})
	if err != nil {
		return nil, 0, err
	}
	return d, wait, nil
}

// lockLane reads the row of a lane and locks it until the transaction ends.
func (s *store) lockLane(ctx context.Context, l lane) (*laneRow, error) {
	row := &laneRow{Notifier: l.Notifier, Destination: l.Destination}
	if _, err := s.db.Write(ctx).NewInsert().Model(row).On("CONFLICT DO NOTHING").Returning("NULL").Exec(ctx); err != nil {
		return nil, fmt.Errorf("create the lane of %s: %w", l.Notifier, err)
	}
	if err := s.db.Write(ctx).NewSelect().Model(row).WherePK().For("UPDATE").Scan(ctx); err != nil {
		return nil, fmt.Errorf("lock the lane of %s: %w", l.Notifier, err)
	}
	return row, nil
}

func (s *store) saveLane(ctx context.Context, row *laneRow) error {
	if _, err := s.db.Write(ctx).NewUpdate().Model(row).WherePK().Exec(ctx); err != nil {
		return fmt.Errorf("write the lane of %s: %w", row.Notifier, err)
	}
	return nil
}

// isPaused reports whether the destination is paused. A pause lasts an hour at most.
func (r *laneRow) isPaused(now time.Time) bool {
	return r.PausedUntil > now.UnixMicro() && r.PausedUntil <= now.Add(maxAhead+time.Minute).UnixMicro()
}

// reserveSend reserves the next send within the rate of the notifier, unless the lane
// has one, and returns the time until it.
func (s *store) reserveSend(ctx context.Context, row *laneRow, p sdk.NotifierProperties, now time.Time) (time.Duration, error) {
	if p.PerSecond <= 0 {
		return 0, nil
	}
	if row.ReservedAt == 0 || row.ReservedAt > farthest(p, now) {
		var err error
		if row.ReservedAt, err = s.nextSend(ctx, row, p, now); err != nil {
			return 0, err
		}
	}
	return max(fromMicros(row.ReservedAt).Sub(now), 0), nil
}

// farthest returns the latest time that the rate of a notifier reaches while many
// destinations have a reservation.
func farthest(p sdk.NotifierProperties, now time.Time) int64 {
	each := min(time.Duration(float64(time.Second)/p.PerSecond), 24*time.Hour)
	return now.Add(maxAhead + 16*maxLanes*each).UnixMicro()
}

// nextSend advances the rate of the notifier by one send and returns its time.
func (s *store) nextSend(ctx context.Context, row *laneRow, p sdk.NotifierProperties, now time.Time) (int64, error) {
	each := time.Duration(float64(time.Second) / p.PerSecond)
	earliest := now.Add(-each * time.Duration(max(p.Burst-1, 0))).UnixMicro()
	r := &notifierRateRow{Notifier: row.Notifier, NextAt: earliest}
	if p.PerDestination {
		r.Destination = row.Destination
	}
	insert := s.db.Write(ctx).NewInsert().Model(r).On("CONFLICT (notifier, destination) DO UPDATE")
	err := insert.Set("next_at = CASE WHEN r.next_at > ? THEN EXCLUDED.next_at ELSE greatest(r.next_at, EXCLUDED.next_at) END", farthest(p, now)).
		Returning("next_at").Scan(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the rate of %s: %w", row.Notifier, err)
	}
	at := r.NextAt
	r.NextAt = at + each.Microseconds()
	if _, err := s.db.Write(ctx).NewUpdate().Model(r).WherePK().Exec(ctx); err != nil {
		return 0, fmt.Errorf("write the rate of %s: %w", row.Notifier, err)
	}
	return max(at, now.UnixMicro()), nil
}

// pauseLane pauses a destination for all processes.
func (s *store) pauseLane(ctx context.Context, l lane, until time.Time) error {
	row := &laneRow{Notifier: l.Notifier, Destination: l.Destination, PausedUntil: until.UnixMicro()}
	_, err := s.db.Write(ctx).NewInsert().Model(row).On("CONFLICT (notifier, destination) DO UPDATE").
		Set("paused_until = greatest(l.paused_until, EXCLUDED.paused_until)").Returning("NULL").Exec(ctx)
	if err != nil {
		return fmt.Errorf("pause the lane of %s: %w", l.Notifier, err)
	}
	return nil
}

// release lets other processes send to a destination that holder has.
func (s *store) release(ctx context.Context, l lane, holder string, now time.Time) error {
	_, err := s.db.Write(ctx).NewUpdate().Model((*laneRow)(nil)).Set("held_until = ?", now.UnixMicro()).Set("reserved_at = 0").
		Where("notifier = ? AND destination = ? AND holder = ? AND held_until > ?", l.Notifier, l.Destination, holder, now.UnixMicro()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("release the lane of %s: %w", l.Notifier, err)
	}
	return nil
}

// endHolds gives up the lanes of holder, whose process has ended.
func (s *store) endHolds(ctx context.Context, holder string) error {
	_, err := s.db.Write(ctx).NewUpdate().Model((*laneRow)(nil)).Set("held_until = 0").Where("holder = ? AND held_until > 0", holder).Exec(ctx)
	if err != nil {
		return fmt.Errorf("end holds of destinations: %w", err)
	}
	return nil
}

// selectHolders has the condition of the index notifications_leased: without it all
// notifications that wait are read.
const selectHolders = `SELECT holder FROM notification_lanes WHERE held_until > ?
	UNION SELECT leased_by FROM notifications WHERE state = 'waiting' AND leased_until > 0 AND leased_until > ?`

// holders lists the processes that have a lane, or a lease of a notification.
func (s *store) holders(ctx context.Context, now time.Time) (holders []string, err error) {
	err = s.db.Read(ctx).NewRaw(selectHolders, now.UnixMicro(), now.UnixMicro()).Scan(ctx, &holders)
	if err != nil {
		return nil, fmt.Errorf("find holders of destinations: %w", err)
	}
	return holders, nil
}

// deleteLanes deletes the lanes and rates that were not used since then.
func (s *store) deleteLanes(ctx context.Context, then time.Time) error {
	at := then.UnixMicro()
	if _, err := s.db.Write(ctx).NewDelete().Model((*notifierRateRow)(nil)).Where("next_at < ?", at).Exec(ctx); err != nil {
		return fmt.Errorf("delete rates of notifiers: %w", err)
	}
	_, err := s.db.Write(ctx).NewDelete().Model((*laneRow)(nil)).Where("held_until < ? AND paused_until < ? AND reserved_at < ?", at, at, at).Exec(ctx)
	if err != nil {
		return fmt.Errorf("delete lanes: %w", err)
	}
	return nil
}
