package ingestion_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/replay"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/web/webtest"
	"github.com/guidonhq/guidon/sdk"
)

// ask sends a management request and reads the answer as JSON.
func ask(t *testing.T, method, address, body string, status int) map[string]any {
	t.Helper()
	got := send(t, method, address, "application/json", body, "Authorization", "Bearer phx_test")
	if got.status != status {
		t.Fatalf("%s %s: %d %s", method, address, got.status, got.body)
	}
	var out map[string]any
	if got.body != "" {
		if err := json.Unmarshal([]byte(got.body), &out); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func replayConfig() replay.Config {
	cfg := deliverConfig()
	return replay.Config{PollMax: cfg.Worker.RetryMax, RetryMin: cfg.Deliver.RetryMin, RetryMax: cfg.Deliver.RetryMax}
}

// startReplayer starts a Replayer and returns its dead letters.
func startReplayer(t *testing.T, d *db.DB, w *pipeline.Worker, del *delivery.Service) *deadletter.Service {
	t.Helper()
	r := replay.NewReplayer(replayConfig(), d, w, del, deadletter.NewMetrics(nil), zap.NewNop())
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Stop(context.Background()) })
	return deadletter.NewService(d, event.DefaultLimits(), r.Wake)
}

func TestReplay(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j := openJournal(t, t.TempDir())
		var broken atomic.Bool
		broken.Store(true)
		bad := func(name string) bool { return broken.Load() && strings.HasPrefix(name, "bad") }
		st := &stage{db: d}
		st.fail = func(batch []*sdk.Event) error {
			for _, e := range batch {
				if bad(e.Name) {
					return errors.New("not now")
				}
			}
			return nil
		}
		sink := &fakeSink{name: "one"}
		sink.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
			for _, name := range eventNames(b) {
				if bad(name) {
					return rejects(sdk.ClassPermanent)(b)
				}
			}
			return b.Committed(), nil
		}
		w := startWorker(t, workerConfig(), j, d, nil, st)
		del := startDeliver(t, deliverConfig(), j, d, newSinks(sink))
		base := webtest.Serve(t, keys(), deadletter.NewHTTP(startReplayer(t, d, w, del)))
		path := base + "/api/projects/1/dead_letters/"
		accept(t, j, "bad 1", "bad 2", "bad 3", "good")
		eventually(t, "six dead letters", func() bool {
			return len(strings.Fields(letters(t, d))) == 12 && st.seen() == "good" && sink.has() == "good"
		})

		if got := ask(t, "POST", path+"replay/", `{"dry_run":true,"event":"bad 1"}`, 200); fmt.Sprint(got["matched"], got["replayed"], got["sources"], len(got["sample"].([]any))) != "2 0 map[sink/one:1 worker:1] 2" {
			t.Errorf("dry run: %v", got)
		}
		got := ask(t, "POST", path+"replay/", `{"source":"worker","event":"bad 1"}`, 200)
		if failures := got["failures"].([]any); got["replayed"] != 0.0 || got["failed"] != 1.0 || len(failures) != 1 || !strings.Contains(fmt.Sprint(failures), "not now") {
			t.Errorf("while it is broken: %v", got)
		}
		_, list := listOf(t, path+"?source=worker&event=bad+1")
		if list[0]["attempts"] != 2.0 || list[0]["replay_waiting"] != false || list[0]["replay_requested_at"] == nil {
			t.Errorf("after a failed replay: %v", list[0])
		}
		for query, want := range map[string]int{"": 6, "?replay_waiting=false": 6, "?replay_waiting=true": 0} {
			if n, _ := listOf(t, path+query); n != want {
				t.Errorf("%q lists %d, want %d", query, n, want)
			}
		}
		if dry := ask(t, "POST", path+"delete/", `{"dry_run":true,"replay_waiting":true}`, 200); dry["matched"] != 0.0 {
			t.Errorf("waiting: %v", dry)
		}

		broken.Store(false)
		got = ask(t, "POST", path+"replay/", `{"source":"worker"}`, 200)
		eventually(t, "three more events through the stages", func() bool { return len(strings.Fields(st.seen())) == 7 }) // known behind the commit
		if got["replayed"] != 3.0 || st.seen() != "good bad 1 bad 2 bad 3" || sink.has() != "good" {
			t.Errorf("the worker's: %v, %s, %s", got, st.seen(), sink.has())
		}
		_, list = listOf(t, path+"?event=bad+2")
		one := fmt.Sprint(path, list[0]["id"], "/")
		edited := ask(t, "PATCH", one, `{"event":"fine","properties":{"n":1.0}}`, 200)
		if p := edited["payload"].(map[string]any); p["event"] != "fine" || p["uuid"] != edited["event_uuid"] || edited["event"] != "fine" {
			t.Errorf("edited: %v", edited)
		}
		ask(t, "PATCH", one, `{"event":""}`, 400)
		ask(t, "POST", one+"replay/", ``, 200)
		if sink.has() != "good fine" {
			t.Errorf("the sink has %s", sink.has())
		}
		ask(t, "GET", one, ``, 404)
		sent := sink.sent()
		if last := sent[len(sent)-1]; last.FirstSeq != 2 || last.LastSeq != 2 || len(last.ID) != 26 {
			t.Errorf("replayed as %+v", last)
		}
		_, list = listOf(t, path+"?event=bad+3")
		ask(t, "DELETE", fmt.Sprint(path, list[0]["id"], "/"), ``, 204)
		if got = ask(t, "POST", path+"replay/", `{}`, 200); got["replayed"] != 1.0 || letters(t, d) != "" {
			t.Errorf("the rest: %v, left %q", got, letters(t, d))
		}
	})
}

func TestReplayToARemovedSink(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	sink := &fakeSink{name: "one", write: rejects(sdk.ClassPermanent)}
	sinks := newSinks(sink)
	del := startDeliver(t, deliverConfig(), j, d, sinks)
	accept(t, j, "a")
	eventually(t, "a dead letter", func() bool { return letters(t, d) == "a" })
	sinks.set()
	l := startReplayer(t, d, startWorker(t, workerConfig(), j, d, nil), del)
	eventually(t, "it says so", func() bool {
		got, err := l.Replay(t.Context(), 1, deadletter.Filter{}, false, time.Second)
		return err == nil && got.Replayed == 0 && got.Failed == 1 && strings.Contains(got.Failures[0].Error, "sink_not_found")
	})
	list, _, err := l.List(t.Context(), 1, deadletter.Filter{}, 10, 0)
	if err != nil || len(list) != 1 || list[0].Code != "test" || list[0].Attempts != 1 {
		t.Errorf("what it was set aside for is gone: %+v, %v", list, err)
	}
}
