//go:build e2e

package e2e_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/eventlog"
)

// collector is the destination of the sink. It notes the events in the order of their
// arrival.
type collector struct {
	url  string
	away atomic.Bool // it answers 503

	mu     sync.Mutex
	events []told
	times  []time.Time    // of the events
	places map[string]int // of the first arrival, by uuid
}

func newCollector(t *testing.T) *collector {
	c := &collector{places: map[string]int{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if c.away.Load() || err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		c.add(t, string(body))
	}))
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

// add notes a batch, a line for each event.
func (c *collector) add(t *testing.T, batch string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for line := range strings.Lines(batch) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Errorf("the sink sent %q: %v", line, err)
			return
		}
		if _, repeated := c.places[e.UUID]; !repeated {
			c.places[e.UUID] = len(c.events)
		}
		c.events, c.times = append(c.events, told{uuid: e.UUID, distinctID: e.DistinctID}), append(c.times, time.Now())
	}
}

// arrivals returns a line for each event, in the order of arrival.
func (c *collector) arrivals() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]string, len(c.events))
	for i, e := range c.events {
		out[i] = e.uuid + " " + e.distinctID
	}
	return out
}

// missing returns an error that counts the events that have not arrived.
func (c *collector) missing(events []told) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return countMissing(events, func(id string) bool { _, ok := c.places[id]; return ok })
}

func countMissing(events []told, has func(uuid string) bool) error {
	n, first := 0, ""
	for _, e := range events {
		if !has(e.uuid) {
			n, first = n+1, cmp.Or(first, e.uuid+" of "+e.distinctID)
		}
	}
	if n > 0 {
		return fmt.Errorf("%d of %d events are not there, one is %s", n, len(events), first)
	}
	return nil
}

// storedOrder returns the uuids of the event store in the order in which they were stored.
func (c *chaos) storedOrder() (out []string, err error) {
	if c.clickhouse != nil {
		return c.clickhouse.uuids(c.Context(), "1")
	}
	conn, err := pgx.Connect(c.Context(), c.storeURL().String())
	if err != nil {
		return nil, err
	}
	defer conn.Close(c.Context())
	rows, err := conn.Query(c.Context(), "SELECT uuid::text FROM events ORDER BY id")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// missingEvents returns an error that counts the events that the event store lacks.
func (c *chaos) missingEvents(events []told) error {
	ids := make([]string, len(events))
	for i := range events {
		ids[i] = events[i].uuid
	}
	found, err := c.storedOf(ids)
	if err != nil {
		return err
	}
	return countMissing(events, func(id string) bool { return slices.Contains(found, id) })
}

// storedOf returns those of the uuids that the event store has.
func (c *chaos) storedOf(ids []string) ([]string, error) {
	if c.clickhouse != nil {
		return c.clickhouse.uuids(c.Context(), havingUUID(ids))
	}
	conn, err := pgx.Connect(c.Context(), c.storeURL().String())
	if err != nil {
		return nil, err
	}
	defer conn.Close(c.Context())
	rows, err := conn.Query(c.Context(), "SELECT uuid::text FROM events WHERE project_id = 1 AND uuid = ANY ($1::uuid[])", ids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// awaitProgress waits until try succeeds. It fails the round after three minutes in
// which the error of try has not changed.
func (c *chaos) awaitProgress(what string, try func() error) {
	c.Helper()
	began, last, changed := time.Now(), "", time.Now()
	for {
		err := try()
		if err == nil {
			c.notef("%s after %.1f s", what, time.Since(began).Seconds())
			return
		}
		if err.Error() != last {
			last, changed = err.Error(), time.Now()
		}
		if time.Since(changed) > 3*time.Minute {
			c.Fatalf("for three minutes not yet: %s: %v", what, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// check compares what was stored and delivered with the story.
func (c *chaos) check() {
	partitions := make([]int, chaosPartitions)
	for i := range partitions {
		partitions[i] = i
	}
	c.probe(partitions) // behind all events of the story
	c.checkErased()
	c.reportSuppressed()
	sure, left := c.story.sure()
	known := slices.Concat(sure, left)
	c.awaitProgress("every acknowledged event is stored", func() error {
		stored, err := c.storedOrder()
		if err != nil {
			return err
		}
		have := map[string]bool{}
		for _, id := range stored {
			have[id] = true
		}
		return countMissing(sure, func(id string) bool { return have[id] })
	})
	stored, err := c.storedOrder()
	if err != nil {
		c.Fatal(err)
	}
	if c.clickhouse != nil {
		c.Logf("ClickHouse has %d rows twice until it merges them", c.clickhouse.doubled.Load())
	}
	c.checkOnce(stored, known)
	c.analyze()
	c.checkExport(stored)
	c.checkOrder("the event store", stored, sure)
	c.awaitProgress("every acknowledged event has reached the sink", func() error { return c.sink.missing(sure) })
	arrived := c.sink.arrivals()
	for i, line := range arrived {
		arrived[i], _, _ = strings.Cut(line, " ")
	}
	c.checkKnown("the sink", arrived, known)
	c.checkOrder("the sink", arrived, slices.Concat(sure, c.story.clearOf(left, arrived)))
	c.Logf("the sink got %d events for %d, and for %d of erased persons", len(arrived), len(sure), len(left))
	c.checkNotDelivered(left)
	c.checkMessages(sure, left)
	c.checkCount(sure)
	c.checkDeadLetters()
	c.checkPersons(stored, sure)
	c.Logf("%d events acknowledged, %d stored", len(sure), len(stored))
}

// analyze collects the statistics of Postgres, which autovacuum does a minute later. The
// export plans with them.
func (c *chaos) analyze() {
	conn, err := pgx.Connect(c.Context(), c.storeURL().String())
	if err == nil {
		_, err = conn.Exec(c.Context(), "ANALYZE")
		_ = conn.Close(c.Context())
	}
	if err != nil {
		c.Fatal(err)
	}
}

// checkOnce checks that no event is stored twice, and none that no client has sent.
func (c *chaos) checkOnce(stored []string, sent []told) {
	seen := map[string]bool{}
	for _, id := range stored {
		if seen[id] {
			c.Errorf("event %s is stored twice", id)
		}
		seen[id] = true
	}
	c.checkKnown("the event store", stored, sent)
}

func (c *chaos) checkKnown(place string, found []string, sent []told) {
	known := maps.Clone(c.story.unsure)
	for _, e := range sent {
		known[e.uuid] = true
	}
	for _, id := range found {
		if !known[id] {
			c.Errorf("%s has the event %s, which no client has sent", place, id)
			return
		}
	}
}

// checkOrder checks that the first occurrences of the events of a distinct id are in the
// order in which they were acknowledged.
func (c *chaos) checkOrder(place string, found []string, sure []told) {
	places := map[string]int{}
	for i, id := range found {
		if _, repeated := places[id]; !repeated {
			places[id] = i
		}
	}
	last, wrong := map[string]told{}, 0
	for _, e := range sure {
		before, ok := last[e.distinctID]
		if ok && places[before.uuid] > places[e.uuid] {
			if wrong++; wrong <= 3 {
				c.Errorf("%s has the event %s of %s (partition %d) before %s, which was acknowledged first", place, e.uuid, e.distinctID, eventlog.PartitionOf(1, e.distinctID, chaosPartitions), before.uuid)
			}
		}
		last[e.distinctID] = e
	}
	if wrong > 0 {
		c.Errorf("%s: %d events are not in their order", place, wrong)
	}
}

func (c *chaos) checkDeadLetters() {
	conn, err := pgx.Connect(c.Context(), c.storeURL().String())
	if err != nil {
		c.Fatal(err)
	}
	defer conn.Close(c.Context())
	n := 0
	if err := conn.QueryRow(c.Context(), "SELECT count(*) FROM dead_letters").Scan(&n); err != nil || n > 0 {
		c.Errorf("%d dead letters: %v", n, err)
	}
}

// chaosView is a person in an answer.
type chaosView struct {
	DistinctIDs  []string       `json:"distinct_ids"`
	Properties   map[string]any `json:"properties"`
	IsIdentified bool           `json:"is_identified"`
}

// personViews returns the persons of a server by their first distinct id.
func personViews(t *testing.T, s *server) map[string]chaosView {
	t.Helper()
	out := map[string]chaosView{}
	for path := "/api/projects/1/persons/?limit=1000"; path != ""; {
		var page struct {
			Results []chaosView `json:"results"`
			Next    string      `json:"next"`
		}
		s.do(t, http.MethodGet, path, nil, &page, http.StatusOK)
		for _, v := range page.Results {
			slices.Sort(v.DistinctIDs)
			delete(v.Properties, "$creator_event_uuid") // that of one of the persons that were merged
			out[v.DistinctIDs[0]] = v
		}
		path = strings.TrimPrefix(page.Next, s.url)
	}
	return out
}

// checkPersons compares the persons with those of the story, and with those of a
// single node that gets the same events in the order in which they were stored.
func (c *chaos) checkPersons(stored []string, sure []told) {
	got, want := personViews(c.T, &c.nodes[0].server), c.story.persons(sure)
	c.comparePersons("the story", got, want, func(v chaosView) chaosView {
		v.IsIdentified = false
		return v
	})
	single := start(c.T, "GUIDON_HTTP_PUBLIC_RATE_PER_SECOND=0")
	c.feed(single, stored, sure)
	c.comparePersons("a single node", got, personViews(c.T, single), func(v chaosView) chaosView { return v })
}

func (c *chaos) comparePersons(with string, got, want map[string]chaosView, compared func(chaosView) chaosView) {
	wrong := 0
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if !reflect.DeepEqual(compared(got[id]), compared(want[id])) {
			if wrong++; wrong <= 3 {
				c.Errorf("person %s:\ngot  %+v\nwant %+v, as %s has it", id, got[id], want[id], with)
			}
		}
	}
	if wrong > 0 || len(got) != len(want) {
		c.Errorf("%d persons are not those of %s; %d persons, want %d", wrong, with, len(got), len(want))
	}
	c.Logf("%d persons compared with %s", len(want), with)
}

// feed sends the stored events to a server, in their order, and waits until it has them.
func (c *chaos) feed(s *server, stored []string, sure []told) {
	texts := map[string]string{}
	for _, e := range sure {
		texts[e.uuid] = e.json
	}
	var batch []string
	n := 0
	send := func() {
		body := fmt.Sprintf(`{"api_key":%q,"batch":[%s]}`, s.project, strings.Join(batch, ","))
		if err := s.status(http.MethodPost, "/batch/", bufio.NewReader(strings.NewReader(body)), http.StatusOK); err != nil {
			c.Fatal(err)
		}
		n, batch = n+len(batch), nil
	}
	for _, id := range stored {
		if texts[id] == "" {
			continue // an unsure one: it sets nothing
		}
		if batch = append(batch, texts[id]); len(batch) == 500 {
			send()
		}
	}
	if len(batch) > 0 {
		send()
	}
	probes := 0
	for _, e := range c.story.extra {
		if !e.posts {
			probes++
		}
	}
	c.awaitProgress("the single node has the events", func() error {
		if got := len(s.stored(c.T, "probe")); got < probes {
			return fmt.Errorf("%d of %d probes", got, probes)
		}
		return nil
	})
}
