package app_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/app/requestlog"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/logmove"
)

// appendUnprocessed appends requests to the journal of a stopped server, as it does before it
// answers, and then the newest record of the server once more.
func appendUnprocessed(t *testing.T, cfg app.Config, requests int) (events int) {
	t.Helper()
	j, err := journal.Open(cfg.Journal.Config, cfg.DataDir, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	stats, err := j.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done, err := j.Read(t.Context(), stats.Last-1, 1, 1<<20)
	if err != nil || len(done) != 1 {
		t.Fatalf("%d records: %v", len(done), err)
	}
	for i := range requests {
		rec := event.Record{ProjectID: 1, ReceivedAt: time.Now(), RequestID: [16]byte{1, byte(i)}, Items: fmt.Appendf(nil,
			`[{"event":"late","distinct_id":"u%d"},{"event":"late","distinct_id":"u%d"},{"event":"late","distinct_id":"u%d"}]`, i, i+1, i+2)}
		if _, err := j.Append(t.Context(), rec.Append(nil)); err != nil {
			t.Fatal(err)
		}
		events += 3
	}
	if _, err := j.Append(t.Context(), done[0].Data); err != nil {
		t.Fatal(err)
	}
	return events
}

// What is on its way in a local journal is stored once by a server on a shared log.
func TestJournalMovesToSharedLog(t *testing.T) {
	t.Parallel()
	database := dbtest.PostgresURL(t)
	var cfg app.Config
	first := serve(t, func(c *app.Config) {
		c.Database.URL, c.Plugins.Instances = database, nil
		cfg = *c
	})
	want := first.captureAs(t, "first", 5)
	first.until(t, "all events are stored", func() bool { all, _ := first.stored(t); return all == want })
	o := logmove.Options{}
	onLog(startBrokers(t))(&cfg)
	move := func() (logmove.Report, error) {
		return requestlog.Move(t.Context(), cfg.Journal, cfg.Database, cfg.DataDir, zap.NewNop(), o)
	}
	if _, err := move(); err == nil {
		t.Error("the journal of a running server was moved")
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	want += appendUnprocessed(t, cfg, 30)
	report, err := move()
	if err != nil || report.Records < 31 || report.Left() != 0 {
		t.Fatalf("%+v: %v", report, err)
	}
	if again, err := move(); err != nil || again.Records != 0 {
		t.Errorf("a second move: %+v %v", again, err)
	}
	second := serveExisting(t, func(c *app.Config) { *c = cfg })
	second.until(t, "all events are stored", func() bool { all, _ := second.stored(t); return all >= want })
	if all, different := second.stored(t); all != want || different != want {
		t.Errorf("%d events are stored, %d different, want %d", all, different, want)
	}
}
