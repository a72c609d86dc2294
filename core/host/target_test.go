package host

import (
	"testing"

	"github.com/guidonhq/guidon/core/host/conn"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
)

func TestTargetCountsGenerations(t *testing.T) {
	t.Parallel()
	box := newMailbox()
	c := settings.Instance{Name: "p", Use: "file", Kind: settings.KindSink}
	tg := &target{mailbox: box, cfg: c, generation: 1}

	c.Required = true
	if tg.configure(c, "a") {
		t.Error("a setting outside of the process made a generation")
	}
	c.Isolated = true
	if !tg.configure(c, "b") || tg.wanted().number != 2 {
		t.Errorf("generation %d after a change", tg.wanted().number)
	}
	if m := box.take(nil); !m.config {
		t.Error("the change was not posted")
	}
	if !tg.configure(c, "other secret") || tg.wanted().number != 3 {
		t.Error("a changed secret made no generation")
	}
	if tg.next().number != 3 || box.take(nil).config {
		t.Error("next left the message in the mailbox")
	}
}

func TestTargetReturnsToTheServedGeneration(t *testing.T) {
	t.Parallel()
	tg := &target{mailbox: newMailbox(), cfg: settings.Instance{Name: "p"}, generation: 1}
	tg.setServed(&conn.Session{Settings: tg.cfg, Generation: 1})
	tg.renew()
	failed := &lifecycle.Failure{State: lifecycle.StateBackoff}
	if tg.setUpgradeError(1, failed) {
		t.Error("the error of an old generation was recorded")
	}
	if !tg.setUpgradeError(2, failed) || tg.next().number != 1 {
		t.Errorf("starts generation %d, want the served one", tg.next().number)
	}
	tg.renew()
	if tg.upgradeError() != nil || tg.next().number != 3 {
		t.Error("a new generation keeps the old error")
	}
}

func TestMailboxDropsMessagesAboutOtherSessions(t *testing.T) {
	t.Parallel()
	box, old, current := newMailbox(), &conn.Session{}, &conn.Session{}
	box.postFor(old, func(m *messages) { m.suspectReason = "call failed" })
	box.post(func(m *messages) { m.release = true })
	if m := box.take(current); m.suspectReason != "" || !m.release {
		t.Errorf("%+v", m)
	}
	select {
	case <-box.wake:
	default:
		t.Error("the supervisor was not woken")
	}
}
