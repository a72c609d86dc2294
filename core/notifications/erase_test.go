package notifications_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/notifications"
	"github.com/guidonhq/guidon/sdk"
)

// TestErasedMessageLeavesItsCount erases the person of a waiting message that reports
// suppressed ones: the next message reports them.
func TestErasedMessageLeavesItsCount(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		p := open(t, d, func(c *notifications.Config, _ *world) { c.Every, c.Burst = 10*time.Second, 1 })
		team := p.chats[0]
		p.happen(t, "paid", "p0", "p1", "p2", "p3")
		p.expectTexts(t, team, "p0")
		team.set(func(n *sdk.Notification) (sdk.NotifyResult, error) { return sdk.NotifyResult{}, errors.New("away") })
		p.clock.pass(10 * time.Second)
		p.expectTexts(t, team, "p0 p3+2")
		eventually(t, "the attempt has failed", func() bool { return p.attempted(t) == 1 })
		if n, err := p.Erase(t.Context(), 1, []string{"p3"}); n != 1 || err != nil {
			t.Fatalf("erased %d: %v", n, err)
		}
		team.set(nil)
		p.clock.pass(10 * time.Second)
		p.happen(t, "paid", "p4")
		p.expectTexts(t, team, "p0 p3+2 p4+2")
	})
}

// attempted counts the waiting messages with an attempt that has ended.
func (p *place) attempted(t *testing.T) (n int) {
	t.Helper()
	err := p.db.Read(t.Context()).NewRaw("SELECT count(*) FROM notifications WHERE state = 'waiting' AND attempts > 0 AND leased_until = 0").Scan(t.Context(), &n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestErasureMeetsASummary erases a person while another process makes the suppressed
// message about it a waiting one. None of both is left.
func TestErasureMeetsASummary(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	p := prepare(t, d, &clock{at: noon}, func(c *notifications.Config, _ *world) { c.Every, c.Burst = time.Hour, 1 })
	p.happen(t, "paid", "p0", "p1")
	erased := make(chan error, 1)
	err := d.Tx(t.Context(), func(ctx context.Context) error {
		for _, statement := range []string{
			`INSERT INTO notifications (project_id, action_id, notifier, destination, key, event_uuid, text, message, suppressed, state, attempts, next_at, leased_until, leased_by, created_at, expires_at, message_id, error_code, error, trace)
				SELECT project_id, action_id, notifier, destination, key || '+', event_uuid, '', message, 0, 'waiting', 0, 0, 0, '', 0, 0, '', '', '', '' FROM notification_rates`,
			`UPDATE notification_rates SET suppressed = 0, key = '', event_uuid = '', message = ''`,
		} {
			if _, err := d.Write(ctx).NewRaw(statement).Exec(ctx); err != nil {
				return err
			}
		}
		go func() {
			_, err := p.Erase(context.Background(), 1, []string{"p1"})
			erased <- err
		}()
		time.Sleep(300 * time.Millisecond) // the erasure waits for the lock of the rate
		return nil
	})
	if err == nil {
		err = <-erased
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := p.rows(t, notifications.Waiting); n != 1 {
		t.Errorf("%d messages wait, want that about p0", n)
	}
}
