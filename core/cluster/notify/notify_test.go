package notify_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/guidonhq/guidon/core/cluster/notify"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

func start(t *testing.T, d *db.DB) *notify.Hub {
	t.Helper()
	h := notify.New(d, zaptest.NewLogger(t))
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Stop(context.WithoutCancel(t.Context())) })
	return h
}

// patience limits the wait for something that must happen.
const patience = 3 * time.Minute

// awaitListening publishes through a until the other hub, of c, listens. The empty payload
// comes with its connection, and may have come before c was subscribed.
func awaitListening(t *testing.T, a *notify.Hub, c <-chan string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		a.Publish("flags", "first of a")
		select {
		case <-c:
			return
		case <-time.After(100 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("the other hub does not listen")
		}
	}
}

// await returns when c received want.
func await(t *testing.T, c <-chan string, want string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case got := <-c:
			if got == want {
				return
			}
		case <-deadline:
			t.Fatalf("no payload %q", want)
		}
	}
}

func TestWithinTheProcess(t *testing.T) {
	t.Parallel()
	h := start(t, dbtest.SQLite(t))
	flags, cancel := h.Subscribe("flags")
	keys, _ := h.Subscribe("keys")
	h.Publish("flags", "7")
	await(t, flags, "7")
	if len(keys) != 0 {
		t.Error("another topic received the payload")
	}
	for i := range 200 {
		h.Publish("flags", strconv.Itoa(i))
	}
	await(t, flags, "") // some did not fit
	cancel()
	for len(flags) > 0 {
		<-flags
	}
	h.Publish("flags", "8")
	if len(flags) != 0 {
		t.Error("a payload after cancel")
	}
}

func TestAmongNodes(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	a, b := start(t, d), start(t, d)
	atA, _ := a.Subscribe("flags")
	atB, _ := b.Subscribe("flags")
	awaitListening(t, a, atB)
	a.Publish("flags", "of a with spaces")
	await(t, atB, "of a with spaces")
	await(t, atA, "of a with spaces")
	b.Publish("flags", strings.Repeat("x", 10_000))
	await(t, atB, "")
	b.Publish("flags", "end")
	await(t, atB, "end")
	select { // its own notifications do not come back
	case got := <-atB:
		if got == "end" {
			t.Error("b received its own notification twice")
		}
	default:
	}
}

// A lost connection is replaced, and subscribers get an empty payload.
func TestReconnect(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	a, b := start(t, d), start(t, d)
	atB, _ := b.Subscribe("flags")
	awaitListening(t, a, atB)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var ended int
		if err := d.Pool().QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE 'LISTEN%' AND pid <> pg_backend_pid()`).Scan(&ended); err != nil {
			t.Fatal(err)
		}
		if ended > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no listening connection")
		}
	}
	await(t, atB, "")
	a.Publish("flags", "after")
	await(t, atB, "after")
}
