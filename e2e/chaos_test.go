//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// chaosPlan is the size of a round of TestClusterChaos.
type chaosPlan struct {
	events, people, clients int
	faults                  int           // those that overlap
	measured                int           // kills and drains that are measured
	pause                   time.Duration // the longest time that a node is stopped or cut off
	overlap                 int           // faults at once
	varied                  bool          // the seed chooses among all options
}

var (
	shortChaos = chaosPlan{events: 5000, people: 100, clients: 6, faults: 7, measured: 1, pause: 8 * time.Second, overlap: 3}
	longChaos  = chaosPlan{events: 200_000, people: 2000, clients: 48, faults: 28, measured: 3, pause: time.Minute, overlap: 3, varied: true}
)

// manyEvents is the number of events above which a round has the faults of a long one.
const manyEvents = 50_000

// TestClusterChaos runs nodes on Apache Kafka and Postgres, or with the log in Postgres, or
// with the events in ClickHouse, while nodes are killed, stopped and drained, the other
// programs are killed, and the network between them is cut. Clients repeat requests without an answer. At the end each
// acknowledged event is in the event store once and has reached the sink, in the
// order of its distinct id, an action has posted a message about each that it fits and
// about no other, and the persons are those of a single node. In rounds with erasures some
// persons are erased with their events: none of either is left.
//
// CHAOS_ROUNDS is the number of long rounds (make cluster-chaos), which differ in their
// options; without it, one short round runs. CHAOS_SEED selects a round, CHAOS_EVENTS and
// CHAOS_FAULTS its size, and the variables of optionsOf its options.
func TestClusterChaos(t *testing.T) {
	t.Parallel()
	plan, rounds, seed := shortChaos, 1, uint64(time.Now().UnixNano())
	if n := chaosSetting(t, "CHAOS_ROUNDS"); n > 0 {
		plan, rounds = longChaos, int(n)
	}
	if n := chaosSetting(t, "CHAOS_EVENTS"); n > 0 {
		if n <= manyEvents {
			varied := plan.varied
			plan = shortChaos
			plan.varied = varied
		}
		plan.events, plan.people = int(n), max(16, int(n)/100)
	}
	if n := chaosSetting(t, "CHAOS_FAULTS"); n > 0 {
		plan.faults, plan.measured = int(n), max(1, min(plan.measured, int(n)/9))
	}
	if n := chaosSetting(t, "CHAOS_SEED"); n > 0 {
		seed = n
	}
	for i := range rounds {
		t.Run(fmt.Sprint("seed ", seed+uint64(i)), func(t *testing.T) { runChaos(t, plan, seed+uint64(i)) })
		if t.Failed() {
			return
		}
	}
}

// chaos is one round.
type chaos struct {
	*testing.T
	plan       chaosPlan
	seed       uint64
	dir        string // logs of all programs; it is kept when the round fails
	random     *rand.Rand
	began      time.Time
	store      *dbtest.Killable
	brokers    []kafka      // none with the log in Postgres
	clickhouse *eventServer // nil with the events in Postgres
	nodes      []*chaosNode
	project    string // key
	sink       *collector
	inbox      *inbox
	options    chaosOptions
	program    string // that nodes with a right clock run
	story      *story

	mu     sync.Mutex
	faults []string // that happened, with their times
}

// partitions of the topic. Three nodes cannot divide them evenly.
const chaosPartitions = 8

func runChaos(t *testing.T, plan chaosPlan, seed uint64) {
	c := &chaos{T: t, plan: plan, seed: seed, began: time.Now(), random: rand.New(rand.NewPCG(seed, 1))}
	var err error
	if c.dir, err = os.MkdirTemp(workDir(t), fmt.Sprint("chaos-", seed, "-")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(c.dir)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		t.Logf("repeat with %s; logs, data and what was stored: %s; faults:\n%s", chaosCommand(seed), c.dir, strings.Join(c.faults, "\n"))
	})
	t.Logf("seed %d, %d events of %d people", seed, plan.events, plan.people)
	c.sink, c.inbox, c.program, c.options = newCollector(t), newInbox(t), binary(t), optionsOf(t, plan, seed)
	if c.options.clocks != nil {
		c.program = shiftedBinary(t)
	}
	t.Logf("options: %s", c.options)
	c.startSoftware()
	t.Cleanup(func() {
		if t.Failed() {
			c.dumpDatabase()
		}
	})
	for i := range 3 {
		c.nodes[i].start(c)
		if i == 0 {
			c.readProjectKey()
			c.startAction()
		}
	}
	c.story = newStory(c)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
	clients := c.story.run(ctx)
	defer func() { // when a fault fails the round
		cancel()
		clients.Wait()
		c.story.erasing.Wait()
	}()
	c.injectFaults()
	c.story.finish()
	clients.Wait()
	c.awaitErasures()
	if t.Failed() {
		return
	}
	c.check()
}

// notef adds a line to the faults of the round.
func (c *chaos) notef(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := fmt.Sprintf("%8.3f ", time.Since(c.began).Seconds()) + fmt.Sprintf(format, args...)
	c.faults = append(c.faults, line)
	c.Log(line)
}
