//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// noteUnclear notes the events of a request without an answer, or with an error: they may
// be in the log, or reach it later.
func (s *story) noteUnclear(events []told, err error) {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return // they were not sent
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		s.unclear[e.uuid] = true
	}
}

func (s *story) countUnclear(events []told) (n int) {
	for _, e := range events {
		if s.unclear[e.uuid] {
			n++
		}
	}
	return n
}

// checkLeft fails the round for events of erased persons that are stored, or have messages.
// It returns the number of those that may be: a request that is repeated can reach the log a
// second time, behind the erasure, and an event that arrives then makes a new person.
func (s *story) checkLeft(when string, found []string) (late int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range found {
		if s.unclear[id] {
			late++
			continue
		}
		s.c.Errorf("event %s of an erased person is stored, or has a message, %s", id, when)
	}
	return late
}

// clearOf returns the events of erased persons that arrived, without those that may have
// arrived out of their order because they are in the log a second time, behind the erasure.
func (s *story) clearOf(left []told, arrived []string) (out []told) {
	there := map[string]bool{}
	for _, id := range arrived {
		there[id] = true
	}
	for _, e := range left {
		if there[e.uuid] && !s.unclear[e.uuid] {
			out = append(out, e)
		}
	}
	return out
}

// checkNotDelivered checks that the sink gets no event of a person after the erasure. A
// batch that is being sent then may arrive, at the latest when the longest pause is over.
func (c *chaos) checkNotDelivered(left []told) {
	c.Helper()
	until := map[string]time.Time{} // by distinct id
	for _, l := range c.story.erased {
		for _, id := range l.ids {
			until[id] = l.at.Add(c.plan.pause + 30*time.Second)
		}
	}
	clear := map[string]bool{}
	for _, e := range left {
		clear[e.uuid] = !c.story.unclear[e.uuid]
	}
	c.sink.mu.Lock()
	defer c.sink.mu.Unlock()
	for i, e := range c.sink.events {
		if at := c.sink.times[i]; clear[e.uuid] && at.After(until[e.distinctID]) {
			c.Errorf("the sink got the event %s of %s %s after the erasure", e.uuid, e.distinctID, at.Sub(until[e.distinctID].Add(-c.plan.pause-30*time.Second)))
		}
	}
}

// awaitErasures waits until each erasure was answered with success.
func (c *chaos) awaitErasures() {
	c.Helper()
	if !c.options.erase {
		return
	}
	c.awaitProgress("every erasure is answered", func() error {
		if n := c.story.waiting.Load(); n > 0 {
			return fmt.Errorf("%d persons are not erased", n)
		}
		return nil
	})
	c.story.erasing.Wait()
}

// checkErased checks that no events of erased persons are stored, and no messages about
// them. Events that were sent a second time, and arrived after the erasure, are erased as
// well. comparePersons finds persons that are left.
func (c *chaos) checkErased() {
	c.Helper()
	if !c.options.erase {
		return
	}
	recorded := 0
	c.awaitProgress("every erasure is carried out", func() (err error) { recorded, err = c.erasuresRecorded(); return err })
	var ids []string
	for _, l := range c.story.erased {
		ids = append(ids, l.ids...)
	}
	found, err := c.leftOf(c.Context(), ids)
	if err == nil && c.clickhouse != nil && slices.ContainsFunc(found, func(id string) bool { return !c.story.unclear[id] }) {
		c.awaitLateRows()
		found, err = c.leftOf(c.Context(), ids)
	}
	if err != nil {
		c.Fatal(err)
	}
	late := c.story.checkLeft("at the end", found)
	_, left := c.story.sure()
	c.Logf("%d persons with %d distinct ids were erased, by %d recorded requests; of their %d events %d were sent again, and %d arrived behind the erasure",
		len(c.story.erased), len(ids), recorded, len(left), c.story.countUnclear(left), late)
	if late == 0 {
		return
	}
	c.eraseAgain(ids)
	if found, err = c.leftOf(c.Context(), ids); err != nil || len(found) > 0 {
		c.Errorf("the events %s were erased twice and are stored, or have messages: %v", found, err)
	}
}

// eraseAgain erases the persons of the distinct ids.
func (c *chaos) eraseAgain(ids []string) {
	c.Helper()
	first := &c.nodes[0].server
	for _, id := range ids {
		var page struct {
			Results []struct {
				UUID string `json:"uuid"`
			} `json:"results"`
		}
		first.do(c.T, http.MethodGet, "/api/projects/1/persons/?distinct_id="+id, nil, &page, http.StatusOK)
		for _, p := range page.Results {
			first.do(c.T, http.MethodDelete, "/api/projects/1/persons/"+p.UUID+"/?delete_events=true", nil, nil, http.StatusNoContent)
		}
	}
}

// erasuresRecorded returns the number of erasures, and an error while some are not carried
// out.
func (c *chaos) erasuresRecorded() (all int, err error) {
	conn, err := pgx.Connect(c.Context(), c.storeURL().String())
	if err != nil {
		return 0, err
	}
	defer conn.Close(c.Context())
	open := 0
	if err := conn.QueryRow(c.Context(), "SELECT count(*), count(*) FILTER (WHERE done_at IS NULL) FROM erasures").Scan(&all, &open); err != nil {
		return 0, err
	}
	if open > 0 {
		err = fmt.Errorf("%d erasures are open", open)
	}
	return all, err
}

// selectLeft returns the uuids of the events of distinct ids that Postgres stores, or has a
// message about.
const selectLeft = `SELECT uuid::text FROM events WHERE project_id = 1 AND distinct_id = ANY ($1)
	UNION ALL SELECT event_uuid FROM notifications WHERE (message::json->'event'->>'distinct_id') = ANY ($1)
	UNION ALL SELECT event_uuid FROM notification_rates WHERE CASE WHEN message <> '' THEN (message::json->'event'->>'distinct_id') = ANY ($1) END`

// leftOf returns the uuids of the events of distinct ids that are stored, or have a message.
func (c *chaos) leftOf(ctx context.Context, ids []string) (found []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if c.clickhouse != nil {
		if found, err = c.clickhouse.uuids(ctx, "distinct_id IN ("+wire.QuoteAll(ids)+")"); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.Connect(ctx, c.storeURL().String())
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, selectLeft, ids)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows(found, rows, pgx.RowTo[string])
}

// reportSuppressed sends an order with a message that reports the suppressed ones: where
// the last of them was about an erased person, they wait for the next message.
func (c *chaos) reportSuppressed() {
	c.Helper()
	if !c.options.erase || c.options.rate == 0 {
		return
	}
	time.Sleep(2 * c.options.rate) // the rate permits it
	random := rand.New(rand.NewPCG(c.seed, uint64(time.Now().UnixNano())))
	client := &chaosClient{story: c.story, random: random, http: &http.Client{Timeout: 5 * time.Second}}
	e := client.event("order", idIn(0, random), map[string]any{"n": 0, "paid": true})
	e.posts = true
	if !c.story.deliver(c.Context(), random, client.http, []told{e}) {
		c.Fatal("the order was not accepted")
	}
	c.story.extra = append(c.story.extra, e)
	c.probe([]int{0}) // behind the order
}
