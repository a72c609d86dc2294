package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/sdk"
)

// receiver is where a webhook posts to. It keeps the events by distinct id.
type receiver struct {
	mu    sync.Mutex
	uuids map[string]bool
	next  map[string]int // by distinct id: the number of its newest event
	wrong []string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range strings.Lines(string(raw)) {
		var ev struct {
			UUID       string `json:"uuid"`
			DistinctID string `json:"distinct_id"`
			Properties struct {
				Step int `json:"step"`
			} `json:"properties"`
		}
		if err := json.Unmarshal([]byte(line), &ev); err != nil || ev.UUID == "" {
			r.wrong = append(r.wrong, fmt.Sprintf("%q: %v", line, err))
			continue
		}
		if last := r.next[ev.DistinctID]; ev.Properties.Step > last+1 {
			r.wrong = append(r.wrong, fmt.Sprintf("step %d of %s after %d", ev.Properties.Step, ev.DistinctID, last))
		}
		r.next[ev.DistinctID] = max(r.next[ev.DistinctID], ev.Properties.Step)
		r.uuids[ev.UUID] = true
	}
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.uuids)
}

func (r *receiver) has(uuid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.uuids[uuid]
}

// sinkOf returns the delivery of a sink as /api/plugins has it.
func (s *server) sinkOf(t *testing.T, name string) (found []delivery.SinkStatus) {
	t.Helper()
	code, raw, _ := s.request(t, http.MethodGet, s.AdminURL+"/api/plugins", "")
	var out struct {
		Results []struct {
			Delivery *delivery.SinkStatus `json:"delivery"`
		} `json:"results"`
	}
	if err := json.Unmarshal([]byte(raw), &out); code != http.StatusOK || err != nil {
		t.Fatalf("status %d, %v: %s", code, err, raw)
	}
	for _, r := range out.Results {
		if r.Delivery != nil && r.Delivery.Sink == name {
			found = append(found, *r.Delivery)
		}
	}
	return found
}

// Two servers share a log and deliver to a webhook, each the partitions that it owns, and
// to a file of their own. When one stops, the other delivers all.
func TestTwoServersOnOneLogDeliver(t *testing.T) {
	t.Parallel()
	to := &receiver{uuids: map[string]bool{}, next: map[string]int{}}
	web := httptest.NewServer(to)
	t.Cleanup(web.Close)
	brokers := startBrokers(t)
	nodes := serveNodes(t, 2, func(c *app.Config) {
		lines := c.Plugins.Instances
		onLog(brokers)(c)
		c.Ingestion.Deliver.Start = "begin"
		c.Plugins.Instances = append(lines, settings.Instance{
			Name: "hook", Kind: "sink", Use: "webhook", Config: map[string]any{"url": web.URL, "format": "ndjson", "allow_hosts": []any{"127.0.0.1"}},
		})
	})
	step := 0
	capture := func(s *server) {
		step++
		var items []string
		for person := range 20 {
			items = append(items, fmt.Sprintf(`{"event":"step","distinct_id":"person%d","properties":{"step":%d}}`, person, step))
		}
		s.capture(t, strings.Join(items, ","))
	}
	for i := range 20 {
		capture(nodes[i%2])
	}
	nodes[0].until(t, "all events are delivered", func() bool { return to.count() == 20*step })
	for _, s := range nodes {
		s.until(t, "each server has a part", func() bool {
			all := s.sinkOf(t, "hook")
			if len(all) != 1 || len(all[0].Partitions) != 6 || all[0].LagRecords != 0 {
				return false
			}
			own := 0
			for _, p := range all[0].Partitions {
				if p.State != "" {
					own++
				}
			}
			return own == 3
		})
		s.until(t, "an idle sink", func() bool { return s.sinkOf(t, "hook")[0].State == "idle" })
	}
	for i := range 20 { // each server owns a part now
		capture(nodes[i%2])
	}
	for _, s := range nodes {
		s.until(t, "each server writes its file", func() bool {
			text, err := os.ReadFile(s.Lines)
			return err == nil && len(text) > 0
		})
	}
	if err := nodes[0].Stop(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		capture(nodes[1])
	}
	nodes[1].until(t, "all events are delivered by one server", func() bool { return to.count() == 20*step })
	nodes[1].until(t, "nothing is behind", func() bool { return nodes[1].sinkOf(t, "lines")[0].LagRecords == 0 })
	uuids := map[string]bool{}
	for _, s := range nodes {
		text, err := os.ReadFile(s.Lines)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var ev struct{ UUID string }
			if err := json.Unmarshal([]byte(line), &ev); err != nil {
				t.Fatal(err)
			}
			uuids[ev.UUID] = true
		}
	}
	if len(uuids) != 20*step {
		t.Errorf("%d of %d events are in the files", len(uuids), 20*step)
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	for _, w := range to.wrong {
		t.Error(w)
	}
}

// A sink that one of two servers has keeps its cursors in the partitions of the other: its
// events there are delivered when the server that has the sink gets the partitions.
func TestSinkOnOneServer(t *testing.T) {
	t.Parallel()
	const forget = 3 * time.Second
	to := &receiver{uuids: map[string]bool{}, next: map[string]int{}}
	web := httptest.NewServer(to)
	t.Cleanup(web.Close)
	postgres, brokers := dbtest.PostgresURL(t), startBrokers(t)
	with := func(c *app.Config) {
		onLog(brokers)(c)
		c.Database.URL, c.Ingestion.Deliver.ForgetAfter = postgres, forget
	}
	core, logged := observer.New(zap.InfoLevel)
	lacks := serveLogged(t, zap.New(core), with)
	<-lacks.Bootstrapped()
	lacks.ProjectKey, lacks.PersonalKey = lacks.First.ProjectKey, lacks.First.PersonalKey
	lacks.until(t, "the server has the job of replays", func() bool {
		nodes := lacks.clusterStatus(t).Nodes
		return len(nodes) == 1 && slices.Contains(nodes[0].Jobs, "replays") && len(nodes[0].Partitions) == 6
	})
	has := serveExisting(t, with, func(c *app.Config) {
		c.Plugins.Instances = []settings.Instance{{
			Name: "hook", Kind: "sink", Use: "webhook", Config: map[string]any{"url": web.URL, "format": "ndjson", "allow_hosts": []any{"127.0.0.1"}},
		}}
	})
	has.ProjectKey, has.PersonalKey = lacks.ProjectKey, lacks.PersonalKey
	lacks.until(t, "partitions are divided", func() bool {
		nodes := lacks.clusterStatus(t).Nodes
		return len(nodes) == 2 && len(nodes[0].Partitions) == 3 && len(nodes[1].Partitions) == 3
	})
	for i := range 10 {
		has.capture(t, fmt.Sprintf(`{"event":"step","distinct_id":"first%d","properties":{"step":1}}`, i))
	}
	const waits = "sink configured on other nodes only: its events in partitions of this node wait"
	lacks.until(t, "the server reports the sink", func() bool { return logged.FilterMessage(waits).Len() == 1 })
	for i := range 10 { // while the server has looked for removed sinks again and again
		lacks.capture(t, fmt.Sprintf(`{"event":"step","distinct_id":"second%d","properties":{"step":1}}`, i))
		time.Sleep(forget / 5)
	}
	has.until(t, "events in the partitions of the server with the sink are delivered", func() bool { return to.count() > 0 })
	if n := to.count(); n == 20 {
		t.Errorf("%d events of 20 are delivered while both servers have partitions", n)
	}
	replayOnOther(t, lacks)
	has.until(t, "the event of the dead letter is delivered", func() bool { return to.has("0192f0aa-0000-7000-8000-0000000000de") })
	if err := lacks.Stop(); err != nil {
		t.Error(err)
	}
	has.until(t, "all events are delivered", func() bool { return to.count() == 21 })
}

// replayOnOther requests the replay of a dead letter of a sink that only the other server
// has, while s has the job of replays.
func replayOnOther(t *testing.T, s *server) {
	t.Helper()
	ev := sdk.Event{
		UUID: "0192f0aa-0000-7000-8000-0000000000de", ProjectID: 1, Name: "step", DistinctID: "dead", Timestamp: time.Now(), ReceivedAt: time.Now(),
		Properties: []byte(`{"step":1}`),
	}
	if err := deadletter.NewStore(s.DB).Add(t.Context(), deadletter.New("sink/hook", &ev, &sdk.Error{Code: "x", Message: "x"}, time.Now())); err != nil {
		t.Fatal(err)
	}
	letters := deadletter.NewService(s.DB, event.DefaultLimits(), func() {})
	if out, err := letters.Replay(t.Context(), 1, deadletter.Filter{}, false, 0); err != nil || out.Waiting+out.Replayed != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
}
