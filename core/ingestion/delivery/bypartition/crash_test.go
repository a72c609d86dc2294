package bypartition_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
)

// process is a plugin process that all partitions of a node share. A call with the event
// of one distinct id ends it, together with all calls that are running.
type process struct {
	mu      sync.Mutex
	poison  string
	exits   int
	running map[string]int // calls by session
	beside  int            // exits with calls of other sessions in flight
}

// call runs a call for a while and reports whether the process died meanwhile.
func (p *process) call(session string, ids []string) (died bool) {
	p.mu.Lock()
	exits := p.exits
	p.running[session]++
	p.mu.Unlock()
	time.Sleep(10 * time.Millisecond) // so that calls of several partitions meet
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[session]--; p.running[session] == 0 {
		delete(p.running, session)
	}
	if p.exits == exits && slices.Contains(ids, p.poison) {
		if p.exits++; len(p.running) > 0 {
			p.beside++
		}
	}
	return p.exits != exits
}

// An event that crashes the process of all partitions becomes a dead letter, and no event
// of a partition whose call ended with the process.
func TestCrashOfOnePartitionBlamesNoOther(t *testing.T) {
	t.Parallel()
	d, log, to := dbtest.Postgres(t), ingestiontest.NewMemoryLog(partitions), newWarehouse()
	poison := idsOf(2, 3)[2]
	to.process = &process{poison: poison, running: map[string]int{}}
	n := newNode(t, "a", d, log, to)
	for p := range partitions {
		n.start(p, 1)
	}
	src := newSource(t, log)
	var ids []string
	for p := range partitions {
		ids = append(ids, idsOf(p, 2)...)
	}
	for i := range 200 {
		src.add(ids...)
		if i == 2 {
			src.add(poison)
		}
	}
	eventually(t, "all other events", func() bool { return to.count() == src.total()-1 })
	eventually(t, "nothing is behind", func() bool { return sinkStatus(t, n).LagRecords == 0 })
	letters, err := deadletter.NewStore(d).After(t.Context(), 0, 10)
	if err != nil || len(letters) != 1 || sinkStatus(t, n).DeadLetters != 1 {
		t.Errorf("%d dead letters, %v", len(letters), err)
	}
	to.process.mu.Lock()
	defer to.process.mu.Unlock()
	if to.process.exits < 2 {
		t.Errorf("%d crashes", to.process.exits)
	}
	t.Logf("%d crashes, %d beside calls of other partitions", to.process.exits, to.process.beside)
	to.check(t)
}
