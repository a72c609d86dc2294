package kafka

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/guidonhq/guidon/core/eventlog"
)

const (
	// maxGroups is the number of groups in flight at which appends wait for a group to be
	// answered, and go together then.
	maxGroups = 2
	// maxGroupWait bounds that wait: a broker that does not answer must not delay the
	// appends to other brokers.
	maxGroupWait = 5 * time.Millisecond
)

// pendingAppend is the records of one append.
type pendingAppend struct {
	records  []kgo.Record
	errs     []error
	answered sync.WaitGroup
}

func newPendingAppend(topic string, parts []eventlog.Part) *pendingAppend {
	a := &pendingAppend{records: make([]kgo.Record, len(parts)), errs: make([]error, len(parts))}
	for i, p := range parts {
		a.records[i] = kgo.Record{Topic: topic, Partition: int32(p.Partition), Value: p.Data}
	}
	a.answered.Add(len(parts))
	return a
}

// wait returns the first error after all records have been answered.
func (a *pendingAppend) wait() error {
	a.answered.Wait()
	for _, err := range a.errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// appendGroups hands appends to the client in groups, so that a request to a broker has the
// records of several. The first maxGroups appends go at once. It is safe for concurrent use.
type appendGroups struct {
	// produce hands a record to the client and calls answered once.
	produce func(r *kgo.Record, answered func(*kgo.Record, error))

	mu       sync.Mutex
	inFlight int
	waiting  []*pendingAppend
	timer    *time.Timer // while appends wait
}

func (l *Log) newAppendGroups() *appendGroups {
	return &appendGroups{produce: func(r *kgo.Record, answered func(*kgo.Record, error)) {
		l.client.TryProduce(context.Background(), r, func(r *kgo.Record, err error) {
			if err == nil {
				l.partitions[r.Partition].appended(r.Offset)
			}
			answered(r, err)
		})
	}}
}

// add hands an append over, now or with others.
func (g *appendGroups) add(a *pendingAppend) {
	g.mu.Lock()
	g.waiting = append(g.waiting, a)
	if g.inFlight >= maxGroups {
		if g.timer == nil {
			g.timer = time.AfterFunc(maxGroupWait, g.sendLate)
		}
		g.mu.Unlock()
		return
	}
	group := g.startGroup()
	g.mu.Unlock()
	g.send(group)
}

// startGroup returns the appends that wait, which are in flight then. g.mu is held.
func (g *appendGroups) startGroup() []*pendingAppend {
	group := g.waiting
	g.waiting = nil
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	if len(group) > 0 {
		g.inFlight++
	}
	return group
}

// sendLate sends what has waited for maxGroupWait.
func (g *appendGroups) sendLate() {
	g.mu.Lock()
	group := g.startGroup()
	g.mu.Unlock()
	g.send(group)
}

// send hands a group to the client.
func (g *appendGroups) send(group []*pendingAppend) {
	var left atomic.Int64
	for _, a := range group {
		left.Add(int64(len(a.records)))
	}
	for _, a := range group {
		for i := range a.records {
			g.produce(&a.records[i], func(_ *kgo.Record, err error) {
				a.errs[i] = err
				a.answered.Done()
				if left.Add(-1) == 0 {
					g.finishGroup()
				}
			})
		}
	}
}

// finishGroup hands over what waits for the group that was answered.
func (g *appendGroups) finishGroup() {
	g.mu.Lock()
	g.inFlight--
	var group []*pendingAppend
	if g.inFlight < maxGroups {
		group = g.startGroup()
	}
	g.mu.Unlock()
	g.send(group)
}
