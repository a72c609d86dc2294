//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"time"
)

// leaver is a person that is erased with its events: a person of the story, or an
// anonymous id of one that was not identified.
type leaver struct {
	ids []string  // all distinct ids, sorted
	at  time.Time // when the erasure was answered
}

// leavesAfter returns the number of events after which a person leaves; 0 if it stays.
// Of five people one leaves, in rounds with erasures. Persons of others are not merged
// with it.
func (s *story) leavesAfter(number int) int {
	if !s.c.options.erase || number%5 != 4 {
		return 0
	}
	perPerson := s.c.plan.events / s.c.plan.people
	return 1 + rand.New(rand.NewPCG(s.c.seed, uint64(1000+number))).IntN(perPerson)
}

// leave notes an event of a person that leaves. After its last one the client sends no
// more of them.
func (c *chaosClient) leave(p *chaosPerson, e *told) {
	e.leaves = true
	p.sent++
	p.spoke = p.spoke || e.distinctID == p.user
	if p.sent >= p.leavesAfter {
		c.people = slices.DeleteFunc(c.people, func(other *chaosPerson) bool { return other == p })
		c.leaving = append(c.leaving, p)
	}
}

// leavers returns the persons that the server makes of the events of p.
func (p *chaosPerson) leavers() (out []leaver) {
	person := slices.DeleteFunc(slices.Clone(p.ids), func(id string) bool { return slices.Contains(p.anonymous, id) })
	if len(person) > 1 || p.spoke { // else no event has the id of the user
		slices.Sort(person)
		out = append(out, leaver{ids: person})
	}
	for _, id := range p.anonymous {
		out = append(out, leaver{ids: []string{id}})
	}
	return out
}

// leaveAll erases the persons that have not left when the clients end.
func (c *chaosClient) leaveAll(ctx context.Context) {
	for _, p := range c.people {
		if p.leavesAfter > 0 && p.sent > 0 {
			c.leaving = append(c.leaving, p)
		}
	}
	c.eraseLeaving(ctx)
}

// eraseLeaving erases the persons whose last event is acknowledged, beside the clients.
func (c *chaosClient) eraseLeaving(ctx context.Context) {
	for _, p := range c.leaving {
		random := rand.New(rand.NewPCG(c.story.c.seed, uint64(1_000_000+p.number)))
		for _, l := range p.leavers() {
			e := &eraser{story: c.story, leaver: l, random: rand.New(rand.NewPCG(random.Uint64(), 1)), http: &http.Client{Timeout: 10 * time.Second}}
			c.story.waiting.Add(1)
			c.story.erasing.Go(func() { e.run(ctx) })
		}
	}
	c.leaving = nil
}

// eraser erases one person.
type eraser struct {
	leaver
	story   *story
	random  *rand.Rand
	http    *http.Client
	unclear bool // an attempt had no answer, or was recorded to be carried out later
}

// run erases the person and checks that nothing is left of it.
func (e *eraser) run(ctx context.Context) {
	var id string
	e.repeat(ctx, func(node *chaosNode) (err error) { id, err = e.find(ctx, node); return err })
	began := time.Now()
	e.repeat(ctx, func(node *chaosNode) error { return e.erase(ctx, node, id) })
	if ctx.Err() != nil {
		return
	}
	e.at = time.Now()
	e.story.waiting.Add(-1)
	e.story.c.notef("erased %s after %.1f s, unclear %t", e.ids, time.Since(began).Seconds(), e.unclear)
	e.story.mu.Lock()
	e.story.erased = append(e.story.erased, e.leaver)
	e.story.mu.Unlock()
	if !e.unclear { // else the answer may be that of a later request, which finds no person
		e.checkGone(ctx)
	}
}

// repeat calls try with nodes at random until it succeeds, or ctx ends.
func (e *eraser) repeat(ctx context.Context, try func(node *chaosNode) error) {
	for ctx.Err() == nil && try(e.story.c.nodes[e.random.IntN(chaosNodes)]) != nil {
		time.Sleep(time.Duration(20+e.random.IntN(200)) * time.Millisecond)
	}
}

// find returns the number of the person, once it has all its distinct ids: an erasure
// concerns the ids that the person has.
func (e *eraser) find(ctx context.Context, node *chaosNode) (string, error) {
	var page struct {
		Results []struct {
			ID          json.Number `json:"id"`
			DistinctIDs []string    `json:"distinct_ids"`
		} `json:"results"`
	}
	status, answer, err := e.ask(ctx, node, http.MethodGet, "/api/projects/1/persons/?distinct_id="+url.QueryEscape(e.ids[0]))
	if err == nil && status == http.StatusOK {
		err = json.Unmarshal(answer, &page)
	}
	if err != nil || status != http.StatusOK {
		return "", statusError(err, status)
	}
	if len(page.Results) == 0 {
		return "", errors.New("the person is not there yet")
	}
	found := page.Results[0].DistinctIDs
	slices.Sort(found)
	if slices.ContainsFunc(found, func(id string) bool { return !slices.Contains(e.ids, id) }) {
		e.story.c.Errorf("the person of %s has the distinct ids %s", e.ids, found)
	}
	if len(found) < len(e.ids) {
		return "", fmt.Errorf("the person has %d of %d ids", len(found), len(e.ids))
	}
	return page.Results[0].ID.String(), nil
}

// erase requests the erasure. Its repetition is answered with 404 when an earlier request
// was carried out.
func (e *eraser) erase(ctx context.Context, node *chaosNode, id string) error {
	status, answer, err := e.ask(ctx, node, http.MethodDelete, "/api/projects/1/persons/"+id+"/?delete_events=true")
	switch {
	case err == nil && status == http.StatusNoContent, err == nil && status == http.StatusNotFound && e.unclear:
		return nil
	case errors.Is(err, syscall.ECONNREFUSED): // it was not sent
		return err
	case err == nil && status < 500:
		e.story.c.Errorf("%s answers the erasure of %s with %d: %s", node.name, e.ids, status, answer)
	}
	e.unclear = true
	return statusError(err, status)
}

func (e *eraser) ask(ctx context.Context, node *chaosNode, method, path string) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, node.url+path, nil)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+node.personal)
	response, err := e.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// statusError returns err, or an error with the status of an answer.
func statusError(err error, status int) error {
	if err == nil {
		err = fmt.Errorf("status %d", status)
	}
	return err
}

// checkGone checks that the events of the person and messages about them are gone: the
// answer to an erasure comes when everything is deleted.
func (e *eraser) checkGone(ctx context.Context) {
	for ctx.Err() == nil {
		found, err := e.story.c.leftOf(ctx, e.ids)
		if err == nil {
			e.story.checkLeft("after the answer", found)
			return
		}
		time.Sleep(time.Second) // Postgres is away
	}
}
