//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// told is an event of the story.
type told struct {
	uuid, distinctID, json string
	posts                  bool // the action posts a message about it
	leaves                 bool // its person is erased
}

// story is what clients send. Its persons do not depend on the order of events of
// different distinct ids: an anonymous id is identified once, the properties of each
// distinct id have names of their own, and other persons are merged without
// conditions.
type story struct {
	c       *chaos
	clients []*chaosClient
	allowed atomic.Int64 // events that clients may send by now
	sent    atomic.Int64
	hurry   atomic.Bool // clients send without pauses

	mu     sync.Mutex
	log    *os.File    // a line for each request
	merges [][2]string // of distinct ids
	unsure map[string]bool
	extra  []told // that no client sends

	erasing sync.WaitGroup
	waiting atomic.Int64    // persons that are to be erased
	erased  []leaver        // that were
	unclear map[string]bool // events of requests that had no answer, or an error, at first
}

// chaosPerson is a person of the story as its client knows it.
type chaosPerson struct {
	number    int
	user      string
	ids       []string // that events may have
	anonymous []string // that are not identified yet
	made      int      // anonymous ids
	aliased   bool

	leavesAfter int // events; 0 for a person that stays
	sent        int
	spoke       bool // an event had the id of the user
}

// chaosClient sends the events of its people, one request after another.
type chaosClient struct {
	story  *story
	random *rand.Rand
	http   *http.Client
	people []*chaosPerson
	sent   []told // that were answered with 200, in order
	count  int

	leaving []*chaosPerson // of whom the last event is in the next request
}

func newStory(c *chaos) *story {
	s := &story{c: c, unsure: map[string]bool{}, unclear: map[string]bool{}}
	var err error
	if s.log, err = os.Create(filepath.Join(c.dir, "requests")); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = s.log.Close() })
	for i := range c.plan.clients {
		s.clients = append(s.clients, &chaosClient{
			story: s, random: rand.New(rand.NewPCG(c.seed, uint64(100+i))),
			http: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 2}},
		})
	}
	for i := range c.plan.people {
		client := s.clients[i%len(s.clients)]
		user := fmt.Sprintf("user-%d", i)
		client.people = append(client.people, &chaosPerson{number: i, user: user, ids: []string{user}, leavesAfter: s.leavesAfter(i)})
	}
	return s
}

// run starts the clients. They end when all events of the story were sent.
func (s *story) run(ctx context.Context) *sync.WaitGroup {
	var running sync.WaitGroup
	for _, client := range s.clients {
		running.Go(func() {
			for ctx.Err() == nil && s.sent.Load() < int64(s.c.plan.events) {
				if s.sent.Load() >= s.allowed.Load() {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				client.step(ctx)
			}
			client.leaveAll(ctx)
		})
	}
	return &running
}

// allow lets the clients send a share of the events. After all shares they do not
// wait any more.
func (s *story) allow(share, shares int) {
	s.allowed.Store(int64(s.c.plan.events) * int64(share) / int64(shares))
}

func (s *story) finish() {
	s.hurry.Store(true)
	s.allow(1, 1)
}

// step sends one request.
func (c *chaosClient) step(ctx context.Context) {
	n := 1
	if c.random.IntN(2) == 0 {
		n = 2 + c.random.IntN(39)
	}
	if c.random.IntN(50) == 0 {
		c.sendUnsure(ctx)
	}
	events := make([]told, n)
	for i := range events {
		events[i] = c.next()
	}
	c.story.sent.Add(int64(n))
	if c.story.deliver(ctx, c.random, c.http, events) {
		c.sent = append(c.sent, events...)
		c.eraseLeaving(ctx)
	}
	if !c.story.hurry.Load() {
		// The events of one fault take about four seconds.
		perEvent := 4 * time.Second * time.Duration(len(c.story.clients)*c.story.c.shares()) / time.Duration(c.story.c.plan.events)
		time.Sleep(time.Duration(float64(perEvent) * float64(n) * 2 * c.random.Float64()))
	}
}

// next returns the next event of the client.
func (c *chaosClient) next() told {
	p := c.people[c.random.IntN(len(c.people))]
	e := c.nextOf(p)
	if p.leavesAfter > 0 {
		c.leave(p, &e)
	}
	return e
}

// nextOf returns the next event of a person.
func (c *chaosClient) nextOf(p *chaosPerson) told {
	switch x := c.random.IntN(100); {
	case x < 6 && p.made < 3:
		p.made++
		id := fmt.Sprintf("anonymous-%d-%d", p.number, p.made)
		p.ids, p.anonymous = append(p.ids, id), append(p.anonymous, id)
		return c.load(p, id)
	case x < 12 && len(p.anonymous) > 0:
		id := p.anonymous[0]
		p.anonymous = p.anonymous[1:]
		return c.merge(p, "$identify", "$anon_distinct_id", id)
	case x < 15 && len(p.anonymous) > 0 && !p.aliased:
		id := p.anonymous[0]
		p.anonymous, p.aliased = p.anonymous[1:], true
		return c.merge(p, "$create_alias", "alias", id)
	case x < 16 && p.leavesAfter == 0:
		// The other person may be merged into this one by its own client at the
		// same time.
		other := p.number/8*8 + c.random.IntN(8)
		if x := c.random.IntN(2); x == 0 {
			other = p.number ^ 1
		}
		if other != p.number && other < c.story.c.plan.people && c.random.IntN(2) == 0 && c.story.leavesAfter(other) == 0 {
			return c.merge(p, "$merge_dangerously", "alias", fmt.Sprintf("user-%d", other))
		}
	}
	id := p.ids[c.random.IntN(len(p.ids))]
	if c.random.IntN(40) == 0 {
		return c.order(p, id)
	}
	return c.load(p, id)
}

// order returns an event of the name that the action has. The action posts about those
// that are paid.
func (c *chaosClient) order(p *chaosPerson, id string) told {
	c.count++
	paid := c.random.IntN(2) == 0
	e := c.event("order", id, map[string]any{"n": c.count, "paid": paid})
	e.posts = paid
	return e
}

// load returns an event that sets properties named after the distinct id.
func (c *chaosClient) load(p *chaosPerson, id string) told {
	c.count++
	place := fmt.Sprintf("%d_%s", p.number%8, id[:1])
	if i := strings.LastIndexByte(id, '-'); id[0] == 'a' {
		place += id[i+1:]
	}
	return c.event("load", id, map[string]any{
		"n": c.count, "$set": map[string]any{"last_" + place: c.count}, "$set_once": map[string]any{"first_" + place: c.count},
	})
}

// merge returns an event that makes another distinct id one of the person.
func (c *chaosClient) merge(p *chaosPerson, name, property, other string) told {
	c.story.mu.Lock()
	defer c.story.mu.Unlock()
	if p.leavesAfter == 0 {
		c.story.merges = append(c.story.merges, [2]string{p.user, other})
	}
	return c.event(name, p.user, map[string]any{property: other})
}

func (c *chaosClient) event(name, id string, properties map[string]any) told {
	identity := uuid.Must(uuid.NewRandomFromReader(randomReader{c.random})).String()
	text, err := json.Marshal(map[string]any{"event": name, "uuid": identity, "distinct_id": id, "properties": properties})
	if err != nil {
		panic(err)
	}
	return told{uuid: identity, distinctID: id, json: string(text)}
}

type randomReader struct{ *rand.Rand }

func (r randomReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return len(p), nil
}

// sendUnsure sends an event once. It may be stored if there is no answer, at any time.
func (c *chaosClient) sendUnsure(ctx context.Context) {
	p := c.people[c.random.IntN(len(c.people))]
	if p.leavesAfter > 0 {
		return // it may be stored behind the erasure
	}
	e := c.event("unsure", p.user, map[string]any{})
	c.story.mu.Lock()
	c.story.unsure[e.uuid] = true
	c.story.mu.Unlock()
	node := c.story.c.nodes[c.random.IntN(chaosNodes)]
	_, _ = c.story.post(ctx, c.http, node, []told{e})
}

// deliver sends a request to nodes at random until one answers with 200. It returns
// false if ctx ends before, or a node refuses it for ever.
func (s *story) deliver(ctx context.Context, random *rand.Rand, client *http.Client, events []told) bool {
	for ctx.Err() == nil {
		node := s.c.nodes[random.IntN(chaosNodes)]
		began := time.Now()
		status, err := s.post(ctx, client, node, events)
		s.note(began, node, events, status, err)
		switch {
		case err == nil && status == http.StatusOK:
			return true
		case err == nil && status < 500 && status != http.StatusTooManyRequests:
			s.c.Errorf("%s answers %d", node.name, status)
			return false
		}
		s.noteUnclear(events, err)
		time.Sleep(time.Duration(20+random.IntN(100)) * time.Millisecond)
	}
	return false
}

// note writes a line about a request to the log.
func (s *story) note(began time.Time, node *chaosNode, events []told, status int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.log, "%.3f-%.3f %s %d events, first %s of %s: %d %v\n",
		began.Sub(s.c.began).Seconds(), time.Since(s.c.began).Seconds(), node.name, len(events), events[0].uuid, events[0].distinctID, status, err)
}

// post sends a request of one event or several.
func (s *story) post(ctx context.Context, client *http.Client, node *chaosNode, events []told) (status int, err error) {
	path, body := "/capture/", strings.Replace(events[0].json, "{", fmt.Sprintf(`{"api_key":%q,`, s.c.project), 1)
	if len(events) > 1 {
		texts := make([]string, len(events))
		for i := range events {
			texts[i] = events[i].json
		}
		path, body = "/batch/", fmt.Sprintf(`{"api_key":%q,"batch":[%s]}`, s.c.project, strings.Join(texts, ","))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, node.url+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return 0, err
	}
	return answer.StatusCode, nil
}

// sure returns the events that were acknowledged, in the order of each distinct id, and
// those of persons that were erased.
func (s *story) sure() (staying, left []told) {
	for _, client := range s.clients {
		for _, e := range client.sent {
			if e.leaves {
				left = append(left, e)
			} else {
				staying = append(staying, e)
			}
		}
	}
	return append(staying, s.extra...), left
}
