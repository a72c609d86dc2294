package app_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/web"
)

// killed is the data directory of a server that was killed, and the events that it
// had acknowledged.
type killed struct {
	files map[string][]byte // of guidon.db and the journal
	acked []string
}

// kill returns the state of a server with events in guidon.db and in its log.
func kill(t *testing.T) *killed {
	t.Helper()
	var dir string
	s := serve(t, func(c *app.Config) {
		dir = c.DataDir
		c.Plugins.Instances = nil
	})
	k := &killed{files: map[string][]byte{}}
	for batch := range 12 {
		if batch == 8 {
			waitFor(t, "a time without readers, to truncate the log", func() bool {
				done, err := s.DB.TruncateLog(t.Context())
				check(t, err)
				return done
			})
		}
		var events []string
		for range 10 {
			id := uuid.NewString()
			k.acked = append(k.acked, strings.ReplaceAll(id, "-", ""))
			events = append(events, fmt.Sprintf(`{"event":"e","uuid":%q,"distinct_id":"u%d","properties":{"text":%q}}`, id, batch, strings.Repeat(id, 10)))
		}
		s.capture(t, strings.Join(events, ","))
		s.until(t, "the events are stored", func() bool { n, err := storedEvents(s.Server); return err == nil && len(n) == len(k.acked) })
	}
	for _, name := range []string{"guidon.db", "guidon.db-wal", "journal/journal.db", "journal/journal.db-wal", "journal/journal.mark"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		k.files[name] = content
	}
	return k
}

// storedEvents counts the stored events by their uuid.
func storedEvents(s *app.Server) (map[string]int, error) {
	var ids []string
	err := s.DB.Read(context.Background()).NewRaw("SELECT lower(hex(uuid)) FROM events NOT INDEXED WHERE event = 'e'").Scan(context.Background(), &ids)
	out := map[string]int{}
	for _, id := range ids {
		out[id]++
	}
	return out, err
}

// damage writes the state into a directory, with guidon.db or its log damaged.
func (k *killed) damage(t *testing.T, dir string, seed uint64) (what string) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	name := "guidon.db-wal"
	if seed%3 == 0 {
		name = "guidon.db"
	}
	content := append([]byte(nil), k.files[name]...)
	at := random.IntN(len(content))
	switch kind := random.IntN(10); {
	case kind < 5:
		bit := random.IntN(8)
		content[at] ^= 1 << bit
		what = fmt.Sprintf("%s: bit %d of byte %d flipped", name, bit, at)
	case kind < 8:
		end := min(len(content), at+1+random.IntN(8000))
		clear(content[at:end])
		what = fmt.Sprintf("%s: bytes %d to %d zeroed", name, at, end)
	default:
		content = content[:at]
		what = fmt.Sprintf("%s: truncated to %d bytes", name, at)
	}
	for other, intact := range k.files {
		if other == name {
			intact = content
		}
		path := filepath.Join(dir, other)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, intact, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return what
}

// TestDamagedDatabase starts servers on directories whose guidon.db or log is
// damaged, one seed after the other ($GUIDON_DAMAGE_SEEDS of them). Each
// acknowledged event is stored once, or the server reports the damage, or the start
// is refused with a sentence that says what to do. SQLite has no checksums of pages:
// a change within the values of one event may go unnoticed.
func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	seeds := 12
	if text := os.Getenv("GUIDON_DAMAGE_SEEDS"); text != "" {
		seeds, _ = strconv.Atoi(text)
	}
	k := kill(t)
	outcomes := map[string]int{}
	for seed := range seeds {
		dir := t.TempDir()
		what := k.damage(t, dir, uint64(seed))
		outcome, err := k.account(t, dir)
		t.Logf("seed %d: %s: %s", seed, what, outcome)
		outcomes[outcome]++
		if err != nil {
			t.Errorf("seed %d: %s: %s: %v", seed, what, outcome, err)
		}
	}
	t.Log(outcomes)
}

// account starts a server and compares what it stores with what was acknowledged.
func (k *killed) account(t *testing.T, dir string) (outcome string, err error) {
	t.Helper()
	cfg, err := app.Load(file(t, ""), nil)
	if err != nil {
		return "", err
	}
	cfg.DataDir, cfg.HTTP.Address, cfg.HTTP.AdminAddress = dir, "127.0.0.1:0", "127.0.0.1:0"
	cfg.HTTP.ManageRate, cfg.HTTP.FailedKeyRate = web.Rate{}, web.Rate{}
	core, logs := observer.New(zap.WarnLevel)
	s, err := app.Start(t.Context(), cfg, app.Options{Version: "test", Log: zap.New(core)})
	if err != nil {
		if !strings.Contains(err.Error(), "guidon check") {
			return "refused", fmt.Errorf("refused without a way out: %w", err)
		}
		return "refused", nil
	}
	defer func() { _ = s.Stop() }() // closing a damaged file may fail
	client := &server{Server: s}
	var readiness string
	damaged := func() bool { return strings.Contains(readiness, `"status":"degraded"`) }
	var missing, unknown int
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, readiness, _ = client.request(t, http.MethodGet, s.AdminURL+"/_readiness", "")
		stored, err := storedEvents(s)
		missing, unknown = 0, len(stored)
		for _, id := range k.acked {
			if stored[id] == 1 {
				unknown--
			} else {
				missing++
			}
		}
		whole := err == nil && missing == 0 && unknown == 0
		checked := strings.Contains(readiness, "checked_at")
		if damaged() || checked && whole || checked && time.Now().After(deadline) {
			break
		}
		if time.Now().After(deadline) {
			return "silent", fmt.Errorf("%d events are missing, and the check has not ended (%w): %s", missing, err, readiness)
		}
	}
	logged := logs.FilterMessageSnippet("database").Len() > 0
	switch {
	case damaged() && logged:
		return "reported", nil
	case damaged():
		return "reported", errors.New("the damage is in readiness but not in the log")
	case missing == 0 && unknown == 0 && logged:
		return "nothing lost, logged", nil
	case missing == 0 && unknown == 0:
		return "nothing lost", nil
	case missing <= 1 && unknown <= 1:
		return "one event changed", nil
	}
	return "silent", fmt.Errorf("%d events are missing and %d are unknown: %s", missing, unknown, readiness)
}
