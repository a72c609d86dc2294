package kafka

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/guidonhq/guidon/core/eventlog"
)

// heldRecords is a client that answers when the test says so.
type heldRecords struct {
	mu       sync.Mutex
	texts    []string
	answered []func(error)
}

func (h *heldRecords) produce(r *kgo.Record, answered func(*kgo.Record, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts = append(h.texts, string(r.Value))
	h.answered = append(h.answered, func(err error) { answered(r, err) })
}

// want checks which records the client has.
func (h *heldRecords) want(t *testing.T, texts ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.texts, texts) {
		t.Fatalf("the client has %q, want %q", h.texts, texts)
	}
}

func appendOf(texts ...string) *pendingAppend {
	var parts []eventlog.Part
	for i, text := range texts {
		parts = append(parts, eventlog.Part{Partition: i, Data: []byte(text)})
	}
	return newPendingAppend("topic", parts)
}

func TestAppendsGoInGroups(t *testing.T) {
	t.Parallel()
	client := &heldRecords{}
	g := &appendGroups{produce: client.produce}
	lone, second, third := appendOf("1"), appendOf("2a", "2b"), appendOf("3")
	g.add(lone)
	client.want(t, "1")
	g.add(second)
	client.want(t, "1", "2a", "2b")
	g.add(third)
	g.add(appendOf("4a", "4b"))
	client.want(t, "1", "2a", "2b")
	refused := errors.New("refused")
	client.answered[1](refused)
	client.want(t, "1", "2a", "2b") // 2b is in flight
	client.answered[0](nil)
	if err := lone.wait(); err != nil {
		t.Error(err)
	}
	client.want(t, "1", "2a", "2b", "3", "4a", "4b")
	client.answered[2](nil)
	if err := second.wait(); !errors.Is(err, refused) {
		t.Errorf("the second append: %v", err)
	}
	client.answered[3](nil)
	if err := third.wait(); err != nil {
		t.Error(err)
	}
	g.add(appendOf("5")) // the group of 3 and 4 is in flight
	client.want(t, "1", "2a", "2b", "3", "4a", "4b", "5")
}

// Groups that are not answered delay other appends for maxGroupWait.
func TestAppendsDoNotWaitForABroker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := &heldRecords{}
		g := &appendGroups{produce: client.produce}
		for _, text := range []string{"1", "2", "3", "4"} {
			g.add(appendOf(text))
		}
		time.Sleep(maxGroupWait - time.Nanosecond)
		synctest.Wait()
		client.want(t, "1", "2")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		client.want(t, "1", "2", "3", "4")
		g.add(appendOf("5"))
		time.Sleep(maxGroupWait)
		synctest.Wait()
		client.want(t, "1", "2", "3", "4", "5")
		client.mu.Lock()
		all := slices.Clone(client.answered)
		client.mu.Unlock()
		for _, answer := range all {
			answer(nil)
		}
		g.add(appendOf("6"))
		client.want(t, "1", "2", "3", "4", "5", "6")
	})
}
