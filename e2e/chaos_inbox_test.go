//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// chaosAction posts a message for each order that is paid.
const chaosAction = `{"name": "Paid", "steps": [{"event": "order", "properties": [{"key": "paid", "value": ["true"], "operator": "exact", "type": "event"}]}],
	"post_to_chat": true, "chat_message_format": "[event.uuid] [event.properties.n]"}`

// inbox is the endpoint of the notifier. It counts the messages by their ids.
type inbox struct {
	url  string
	away atomic.Bool // it answers 503, to some after it has noted the message

	mu       sync.Mutex
	messages map[string]*message // by id
	arrived  int
}

// message is a message of an action.
type message struct {
	event      string // uuid
	text       string
	suppressed int // messages that it reports
	times      int // that it arrived
}

func newInbox(t *testing.T) *inbox {
	in := &inbox{messages: map[string]*message{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		away := in.away.Load()
		if err != nil || away && rand.IntN(2) == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		in.add(t, r.Header.Get("Webhook-Id"), text)
		if away {
			panic(http.ErrAbortHandler) // the answer is lost
		}
	}))
	t.Cleanup(s.Close)
	in.url = s.URL
	return in
}

// add notes a message. One that arrives again is the same.
func (in *inbox) add(t *testing.T, id string, text []byte) {
	var body struct {
		Data struct {
			Text       string `json:"text"`
			Suppressed int    `json:"suppressed"`
			Event      struct {
				UUID string `json:"uuid"`
			} `json:"event"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &body); err != nil || id == "" {
		t.Errorf("the notifier sent %q with the id %q: %v", text, id, err)
		return
	}
	m := message{event: body.Data.Event.UUID, text: body.Data.Text, suppressed: body.Data.Suppressed}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.arrived++
	known := in.messages[id]
	if known == nil {
		in.messages[id] = &m
		known = &m
	} else if m.event != known.event || m.text != known.text || m.suppressed != known.suppressed {
		t.Errorf("message %s is %+v, and was %+v", id, m, *known)
	}
	known.times++
}

// byEvent returns the messages by the event that they are about.
func (in *inbox) byEvent() map[string][]message {
	in.mu.Lock()
	defer in.mu.Unlock()
	out := map[string][]message{}
	for _, m := range in.messages {
		out[m.event] = append(out[m.event], *m)
	}
	return out
}

// startAction makes the action of which the messages are checked.
func (c *chaos) startAction() {
	c.Helper()
	first := &c.nodes[0].server
	first.do(c.T, http.MethodPost, "/api/projects/1/actions/", json.RawMessage(chaosAction), nil, http.StatusCreated)
}

// checkMessages checks that there is a message for each acknowledged event that fits the
// action, under one id, and for no other event. Where the rate is limited, the messages
// and those that they report as suppressed are as many as the events. Of erased persons
// there may be messages.
func (c *chaos) checkMessages(sure, left []told) {
	want, may := paidOrders(sure), paidOrders(left)
	c.awaitProgress("every message is delivered", func() error { return c.messagesOutstanding(want) })
	found, reported, ids := c.inbox.byEvent(), 0, 0
	for event, messages := range found {
		if !want[event] && !may[event] {
			c.Errorf("there is a message about %s, which does not fit the action: %+v", event, messages)
		}
		for _, m := range messages {
			ids++
			reported += 1 + m.suppressed
		}
		if len(messages) > 1 && c.options.rate == 0 && !(may[event] && c.story.unclear[event]) { // that may be processed twice
			c.Errorf("there are several messages about %s: %+v", event, messages)
		}
	}
	if reported < len(want) || c.options.rate == 0 && reported > len(want)+len(may) {
		c.Errorf("%d messages report %d events, of which there are %d, and %d of erased persons", ids, reported, len(want), len(may))
	}
	c.Logf("%d messages arrived, %d with repetitions; they report %d of %d events", ids, c.inbox.arrived, reported, len(want))
}

// paidOrders returns the events that the action posts a message about.
func paidOrders(events []told) map[string]bool {
	out := map[string]bool{}
	for _, e := range events {
		if e.posts {
			out[e.uuid] = true
		}
	}
	return out
}

// messagesOutstanding returns an error while messages wait, and fails the round when one
// was given up.
func (c *chaos) messagesOutstanding(want map[string]bool) error {
	conn, err := pgx.Connect(c.Context(), c.storeURL().String())
	if err != nil {
		return err
	}
	defer conn.Close(c.Context())
	var waiting, given, suppressed int
	err = conn.QueryRow(c.Context(), `SELECT count(*) FILTER (WHERE state = 'waiting'), count(*) FILTER (WHERE state IN ('failed', 'expired')),
		(SELECT coalesce(sum(suppressed), 0)::int FROM notification_rates) FROM notifications`).Scan(&waiting, &given, &suppressed)
	if err != nil {
		return err
	}
	if given > 0 {
		c.Fatalf("%d messages were given up", given)
	}
	missing := 0
	if found := c.inbox.byEvent(); c.options.rate == 0 {
		for event := range want {
			if len(found[event]) == 0 {
				missing++
			}
		}
	}
	if behind, err := c.behind(conn); err != nil || behind > 0 || waiting > 0 || suppressed > 0 || missing > 0 {
		return fmt.Errorf("%d partitions have unread records, %d messages wait, %d are suppressed, %d have not arrived: %w", behind, waiting, suppressed, missing, err)
	}
	return nil
}

// behind returns the number of partitions in which the reader of notifications is behind
// the worker.
func (c *chaos) behind(conn *pgx.Conn) (n int, err error) {
	err = conn.QueryRow(c.Context(), `SELECT count(*) FROM ingestion_cursors w WHERE name LIKE 'worker@%' AND NOT EXISTS (SELECT 1 FROM ingestion_cursors f
		WHERE f.name = 'follower/notifications@' || split_part(w.name, '@', 2) AND (f.seq, f.idx) >= (w.seq, w.idx))`).Scan(&n)
	return n, err
}
