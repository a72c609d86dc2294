package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// TestFlagsAreLinearizable lets clients change and read the same flags while the
// server is killed and started again. There is one order of all changes and reads of
// the management API that explains every answer, and one of all changes and answers
// of /decide: a change is visible to both when it is answered, and none is ever taken
// back. A change without an answer has happened at some time or never. Between the
// commit of a change and its answer, the management API is ahead of /decide, so the
// two together have no such order.
func TestFlagsAreLinearizable(t *testing.T) {
	s := newServer(t)
	s.start(t)
	h := &history{begin: time.Now(), server: s}
	for i := range 3 {
		h.flags = append(h.flags, createCounterFlag(t, s, fmt.Sprintf("flag-%d", i)))
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for client := range 9 {
		do := []func(client, flag int) bool{h.write, h.read, h.decide}[client%3]
		wg.Go(func() {
			for n := client; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if !do(client, n%len(h.flags)) {
					time.Sleep(20 * time.Millisecond) // the server is down
				}
			}
		})
	}
	const changes = 30 // in the life of each process
	for range 2 {
		h.waitFor(t, changes)
		s.kill()
		s.start(t)
	}
	h.waitFor(t, changes)
	close(stop)
	wg.Wait()
	if err := s.stop(t); err != nil {
		t.Errorf("stop: %v", err)
	}
	h.check(t)
}

// history is what the clients asked and what the server answered.
type history struct {
	begin  time.Time
	server *server
	flags  []counterFlag
	next   atomic.Int64 // the last number that a client has written

	mu                        sync.Mutex
	changes, reads, decisions []porcupine.Operation
	answered                  int // changes with an answer
	refused                   []string
}

// counterFlag is a flag whose payload is a number.
type counterFlag struct {
	id  int64
	key string
}

// operation is the input of one operation: a write of a number, or a read.
type operation struct {
	flag   int
	write  bool
	number int64
}

func filtersOf(number int64) string {
	return fmt.Sprintf(`{"groups":[{"properties":[],"rollout_percentage":100}],"payloads":{"true":"%d"}}`, number)
}

func createCounterFlag(t *testing.T, s *server, key string) counterFlag {
	t.Helper()
	status, body, err := request(s, http.MethodPost, "/api/projects/1/feature_flags/", fmt.Sprintf(`{"key":%q,"active":true,"filters":%s}`, key, filtersOf(0)))
	var created struct {
		ID int64 `json:"id"`
	}
	if err != nil || status != http.StatusCreated || json.Unmarshal(body, &created) != nil {
		t.Fatalf("create a flag: %d %s %v", status, body, err)
	}
	return counterFlag{created.ID, key}
}

func (h *history) now() int64 { return int64(time.Since(h.begin)) }

func (h *history) write(_, flag int) bool {
	op := operation{flag: flag, write: true, number: h.next.Add(1)}
	call := h.now()
	status, body, err := request(h.server, http.MethodPatch, h.path(flag), `{"filters":`+filtersOf(op.number)+`}`)
	done := h.now()
	if errors.Is(err, syscall.ECONNREFUSED) {
		return false // it was not sent
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil:
		done = math.MaxInt64 // it takes effect at any time, or never
	case status != http.StatusOK:
		h.refused = append(h.refused, fmt.Sprintf("%d %s", status, body))
		done = math.MaxInt64
	default:
		h.answered++
	}
	h.changes = append(h.changes, porcupine.Operation{Input: op, Call: call, Return: done})
	return err == nil
}

func (h *history) read(_, flag int) bool {
	call := h.now()
	status, body, err := request(h.server, http.MethodGet, h.path(flag), "")
	done := h.now()
	var got struct {
		Filters struct {
			Payloads map[string]string `json:"payloads"`
		} `json:"filters"`
	}
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &got) != nil {
		return false
	}
	return h.add(&h.reads, flag, call, done, got.Filters.Payloads["true"])
}

func (h *history) decide(client, flag int) bool {
	call := h.now()
	status, body, err := request(h.server, http.MethodPost, "/decide?v=3", fmt.Sprintf(`{"api_key":%q,"distinct_id":"c%d"}`, h.server.project, client))
	done := h.now()
	var got struct {
		Payloads map[string]string `json:"featureFlagPayloads"`
	}
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &got) != nil || len(got.Payloads) != len(h.flags) {
		return false
	}
	return h.add(&h.decisions, flag, call, done, got.Payloads[h.flags[flag].key])
}

func (h *history) add(to *[]porcupine.Operation, flag int, call, done int64, text string) bool {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		number = -1 // no write has this number: the check fails
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	*to = append(*to, porcupine.Operation{Input: operation{flag: flag}, Output: number, Call: call, Return: done})
	return true
}

func (h *history) path(flag int) string {
	return fmt.Sprintf("/api/projects/1/feature_flags/%d/", h.flags[flag].id)
}

// waitFor waits until the clients have written n more times.
func (h *history) waitFor(t *testing.T, n int) {
	t.Helper()
	h.mu.Lock()
	target := h.answered + n
	h.mu.Unlock()
	until(t, func() string {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.answered < target {
			return fmt.Sprintf("%d of %d changes", h.answered, target)
		}
		return ""
	})
}

func (h *history) check(t *testing.T) {
	t.Helper()
	for name, seen := range map[string][]porcupine.Operation{"management": h.reads, "decide": h.decisions} {
		if result := porcupine.CheckOperationsTimeout(register, slices.Concat(h.changes, seen), patience); result != porcupine.Ok {
			t.Errorf("the history of %s is not linearizable: %s", name, result)
		}
	}
	if len(h.refused) > 0 {
		t.Errorf("%d changes were refused, the first with %s", len(h.refused), h.refused[0])
	}
	t.Logf("%d changes, %d of them without an answer, %d reads, %d decisions", len(h.changes), len(h.changes)-h.answered, len(h.reads), len(h.decisions))
}

// register is the model: each flag is a register that holds the number written last.
var register = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		parts := map[int][]porcupine.Operation{}
		for _, o := range all {
			flag := o.Input.(operation).flag
			parts[flag] = append(parts[flag], o)
		}
		var out [][]porcupine.Operation
		for _, p := range parts {
			out = append(out, p)
		}
		return out
	},
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		if op := input.(operation); op.write {
			return true, op.number
		}
		return output.(int64) == state.(int64), state
	},
}

// request sends a request with the personal key.
func request(s *server, method, path, body string) (status int, answer []byte, err error) {
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(path, "/api/") {
		req.Header.Set("Authorization", "Bearer "+s.personal)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}
