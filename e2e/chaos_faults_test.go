//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/eventlog"
)

// chaosFault is something that goes wrong for a while.
type chaosFault struct {
	name, target string
	hold         time.Duration
	begin, end   func()
	until        time.Time
}

// shares is the number of parts that the events of a round are sent in.
func (c *chaos) shares() int { return c.plan.faults + 2*c.plan.measured }

// injectFaults runs all faults of the round and returns when all have ended and every
// node is ready.
func (c *chaos) injectFaults() {
	share := 0
	next := func() { share++; c.story.allow(share, c.shares()) }
	perMeasure := c.plan.faults / (c.plan.measured + 1)
	var active []*chaosFault
	var bag []string
	for i := range c.plan.faults {
		next()
		c.supervise()
		if len(bag) == 0 {
			bag = c.kinds()
			c.random.Shuffle(len(bag), func(i, j int) { bag[i], bag[j] = bag[j], bag[i] })
		}
		f := c.newFault(bag[0], active)
		bag = bag[1:]
		if f != nil { // else each target has a fault
			c.notef("begin %s", f.name)
			f.begin()
			f.until = time.Now().Add(f.hold)
			active = append(active, f)
			time.Sleep(time.Duration(c.random.Int64N(int64(3 * time.Second))))
			active = c.endFaults(active, c.plan.overlap-1)
		}
		if i%(perMeasure+1) == perMeasure {
			active = c.endFaults(active, 0)
			next()
			c.measureKill()
			next()
			c.measureDrain()
		}
	}
	c.endFaults(active, 0)
	c.heal()
}

// endFaults ends the faults of which the time is over, and the ones that end first
// until at most some are left.
func (c *chaos) endFaults(active []*chaosFault, left int) []*chaosFault {
	slices.SortFunc(active, func(a, b *chaosFault) int { return a.until.Compare(b.until) })
	for len(active) > 0 && (len(active) > left || time.Now().After(active[0].until)) {
		time.Sleep(time.Until(active[0].until))
		active[0].end()
		c.notef("end   %s", active[0].name)
		active = active[1:]
	}
	return active
}

// supervise starts the nodes again that have ended by themselves, because they could
// not reach Postgres or the broker when they started.
func (c *chaos) supervise() {
	for _, n := range c.nodes {
		if n.cmd != nil && !n.running() && !n.stopped.Load() {
			n.launch(c)
		}
	}
}

// chaosKinds are the faults of which each happens as often as the others.
var chaosKinds = []string{
	"kill", "kill all nodes", "pause", "kill the broker", "pause the broker", "kill Postgres",
	"cut off from the broker", "cut off from Postgres", "destination away", "notified service away",
}

// kinds returns the kinds of faults that the round has.
func (c *chaos) kinds() []string {
	kinds := slices.Clone(chaosKinds)
	if c.options.brokers == 0 {
		kinds = slices.DeleteFunc(kinds, func(kind string) bool { return strings.HasSuffix(kind, "the broker") })
	}
	if c.options.clickhouse {
		kinds = append(kinds, "kill ClickHouse", "cut off from ClickHouse")
	}
	return kinds
}

// newFault returns a fault of a target that has none, or nil.
func (c *chaos) newFault(kind string, active []*chaosFault) *chaosFault {
	free := func(target string) bool {
		return !slices.ContainsFunc(active, func(f *chaosFault) bool { return f.target == target })
	}
	pause := c.pauseTime()
	f := &chaosFault{name: kind, target: kind, hold: pause}
	switch kind {
	case "kill the broker":
		f.hold = min(pause, 15*time.Second)
		c.newBrokerFault(f, func(b kafka) { b.kill(c.T) }, func(b kafka) { b.start(c.T) })
	case "pause the broker":
		f.target, f.hold = "kill the broker", max(pause, 7*time.Second)
		signal := func(s syscall.Signal) func(b kafka) { return func(b kafka) { _ = b.cmd.Process.Signal(s) } }
		c.newBrokerFault(f, signal(syscall.SIGSTOP), signal(syscall.SIGCONT))
	case "kill all nodes":
		f.hold = min(pause, 3*time.Second)
		c.newRestart(f, free)
	case "kill Postgres":
		f.hold = min(pause, 15*time.Second)
		f.begin, f.end = func() { c.store.Kill(c.T) }, func() { c.store.Start(c.T) }
	case "kill ClickHouse":
		f.hold = min(pause, 15*time.Second)
		f.begin, f.end = func() { c.clickhouse.Kill(c.T) }, func() { c.clickhouse.Start(c.T) }
	case "destination away":
		f.begin, f.end = func() { c.sink.away.Store(true) }, func() { c.sink.away.Store(false) }
	case "notified service away":
		f.begin, f.end = func() { c.inbox.away.Store(true) }, func() { c.inbox.away.Store(false) }
	default:
		c.newNodeFault(f, free)
	}
	if f.begin == nil || !free(f.target) {
		return nil
	}
	return f
}

// newBrokerFault makes f concern one broker, or all of them.
func (c *chaos) newBrokerFault(f *chaosFault, begin, end func(b kafka)) {
	brokers := c.brokers
	if len(brokers) > 1 && c.random.IntN(4) > 0 {
		i := c.random.IntN(len(brokers))
		f.name, brokers = fmt.Sprint(f.name, " ", i+1), brokers[i:i+1]
	}
	each := func(do func(b kafka)) func() {
		return func() {
			var all sync.WaitGroup
			for _, b := range brokers {
				all.Go(func() { do(b) })
			}
			all.Wait()
		}
	}
	f.begin, f.end = each(begin), each(end)
}

// newRestart makes f kill all nodes that have no other fault.
func (c *chaos) newRestart(f *chaosFault, free func(string) bool) {
	nodes := slices.DeleteFunc(slices.Clone(c.nodes), func(n *chaosNode) bool { return !n.running() || !free(n.name) })
	f.begin = func() {
		for _, n := range nodes {
			n.kill()
		}
	}
	f.end = func() {
		for _, n := range nodes {
			if !n.running() {
				n.launch(c)
			}
		}
	}
}

// newNodeFault chooses a node that has no fault for f.
func (c *chaos) newNodeFault(f *chaosFault, free func(string) bool) {
	var nodes []*chaosNode
	for _, n := range c.nodes {
		if n.running() && free(n.name) {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return
	}
	n := nodes[c.random.IntN(len(nodes))]
	state := []linkState{linkRefused, linkStalled}[c.random.IntN(2)]
	kind := f.name
	f.name, f.target = n.name+": "+kind, n.name
	switch kind {
	case "kill":
		f.begin = func() { n.kill() }
		f.end = func() { n.launch(c) }
	case "pause":
		if c.random.IntN(2) == 0 {
			f.hold = max(f.hold, 7*time.Second) // others take its partitions
		}
		f.begin, f.end = func() { n.signal(syscall.SIGSTOP) }, func() { n.signal(syscall.SIGCONT) }
	case "cut off from the broker":
		f.name += fmt.Sprintf(" (%s)", state)
		links := n.brokers
		if len(links) > 1 && c.random.IntN(3) == 0 {
			i := c.random.IntN(len(links))
			f.name, links = fmt.Sprint(f.name, " ", i+1), links[i:i+1]
		}
		set := func(s linkState) func() {
			return func() {
				for _, l := range links {
					l.set(s)
				}
			}
		}
		f.begin, f.end = set(state), set(linkOpen)
	case "cut off from Postgres":
		f.name += fmt.Sprintf(" (%s)", state)
		f.begin, f.end = func() { n.base.set(state) }, func() { n.base.set(linkOpen) }
	case "cut off from ClickHouse":
		f.name += fmt.Sprintf(" (%s)", state)
		f.begin, f.end = func() { n.events.set(state) }, func() { n.events.set(linkOpen) }
	}
}

// pauseTime returns up to the longest pause; short ones are as frequent as long ones.
func (c *chaos) pauseTime() time.Duration {
	longest := c.plan.pause.Seconds()
	return time.Duration(math.Pow(longest*5, c.random.Float64()) / 5 * float64(time.Second))
}

func (s linkState) String() string { return [...]string{"open", "refused", "stalled"}[s] }

// heal waits until each node that should run is ready. A node that has ended because
// of a fault is started again.
func (c *chaos) heal() {
	c.Helper()
	for i, n := range c.nodes {
		if i < 3 || n.running() {
			n.start(c)
		}
	}
}

// measureKill kills a node and prints the time until the others process events of all
// its partitions.
func (c *chaos) measureKill() {
	c.Helper()
	c.heal()
	n := c.nodes[c.random.IntN(3)]
	owned := c.settled(n)
	c.notef("begin measured kill of %s, which has the partitions %v", n.name, owned)
	killed := time.Now()
	n.kill()
	c.awaitOthers(n, owned)
	moved := time.Since(killed)
	c.probe(owned)
	c.notef("TAKEOVER after kill -9: leases %.2f s, events processed %.2f s", moved.Seconds(), time.Since(killed).Seconds())
	n.start(c)
}

// measureDrain adds a node, ends another with SIGTERM and prints the time until the
// others process events of all its partitions.
func (c *chaos) measureDrain() {
	c.Helper()
	c.heal()
	added := c.nodes[chaosNodes-1]
	c.notef("add %s", added.name)
	added.start(c)
	n := c.nodes[c.random.IntN(3)]
	owned := c.settled(n)
	c.settled(added)
	c.notef("begin measured drain of %s, which has the partitions %v", n.name, owned)
	began := time.Now()
	n.stopped.Store(true)
	n.signal(syscall.SIGTERM)
	c.awaitOthers(n, owned)
	moved := time.Since(began)
	c.probe(owned)
	c.notef("DRAIN after SIGTERM: leases %.2f s, events processed %.2f s", moved.Seconds(), time.Since(began).Seconds())
	select {
	case <-n.ended:
	case <-time.After(2 * time.Minute):
		c.Errorf("%s has not ended two minutes after SIGTERM", n.name)
		n.kill()
	}
	n.start(c)
	added.kill()
}

// settled waits until the node owns partitions, and no partition is free, and returns
// those of the node.
func (c *chaos) settled(n *chaosNode) (owned []int) {
	c.Helper()
	eventually(c.T, 2*time.Minute, n.name+" owns partitions", func() error {
		owners, err := c.owners()
		owned = owned[:0]
		for p, owner := range owners {
			if owner == n.name {
				owned = append(owned, p)
			}
		}
		slices.Sort(owned)
		if err != nil || len(owned) == 0 || len(owners) < chaosPartitions {
			return fmt.Errorf("owners %v: %w", owners, err)
		}
		return nil
	})
	return owned
}

// awaitOthers waits until nodes other than n own partitions.
func (c *chaos) awaitOthers(n *chaosNode, partitions []int) {
	c.Helper()
	eventually(c.T, 2*time.Minute, "other nodes own the partitions", func() error {
		owners, err := c.owners()
		for _, p := range partitions {
			if owners[p] == "" || owners[p] == n.name {
				return fmt.Errorf("owners %v: %w", owners, err)
			}
		}
		return err
	})
}

// owners returns the names of the nodes by partition.
func (c *chaos) owners() (map[int]string, error) {
	ctx, cancel := context.WithTimeout(c.Context(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.storeURL().String())
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT split_part(l.name, '/', 2)::int, n.name FROM cluster_leases l
		JOIN cluster_nodes n ON n.id = l.node WHERE l.name LIKE 'partitions/%'`)
	if err != nil {
		return nil, err
	}
	out := map[int]string{}
	var p int
	var name string
	_, err = pgx.ForEachRow(rows, []any{&p, &name}, func() error { out[p] = name; return nil })
	return out, err
}

// probe sends an event to each of the partitions and waits until they are stored.
func (c *chaos) probe(partitions []int) {
	c.Helper()
	random := rand.New(rand.NewPCG(c.seed, uint64(time.Now().UnixNano())))
	client := &chaosClient{story: c.story, random: random, http: &http.Client{Timeout: 5 * time.Second}}
	var events []told
	for _, p := range partitions {
		events = append(events, client.event("probe", idIn(p, random), map[string]any{}))
	}
	if !c.story.deliver(c.Context(), random, client.http, events) {
		c.Fatal("the probe was not accepted")
	}
	c.story.extra = append(c.story.extra, events...)
	eventually(c.T, 2*time.Minute, "the probes are stored", func() error { return c.missingEvents(events) })
}

// idIn returns a distinct id of the first project in a partition.
func idIn(partition int, random *rand.Rand) string {
	for {
		if id := fmt.Sprintf("probe-%d", random.Uint64()); eventlog.PartitionOf(1, id, chaosPartitions) == partition {
			return id
		}
	}
}
