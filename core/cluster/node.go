package cluster

import (
	"context"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbclock"
	"github.com/guidonhq/guidon/core/retry"
)

// processStart is the zero of monotonic where the system has no clock for it.
var processStart = time.Now()

// Info describes a node to operators.
type Info struct {
	ID      string // new at each start
	Name    string
	Version string
	Address string
	Roles   []string
	LogID   string // of the log that all nodes share; empty if each has its own
	// ReplaceLog makes LogID the log of the cluster, if it had another one that no node
	// uses any more.
	ReplaceLog bool
	// Observer makes the node read the state of the cluster only: it writes no beat,
	// takes nothing, and is in no answer but its own.
	Observer bool
}

// Wake wakes the other nodes and is woken by them.
type Wake interface {
	Publish(topic, payload string)
	Subscribe(topic string) (payloads <-chan string, cancel func())
}

// patience is in how many polls a job stays free for the preferred node.
const patience = 2

// topic is that of the notifications of nodes: a lease became free.
const topic = "cluster"

// Node is a Member of a cluster.
type Node struct {
	cfg     Config
	info    Info
	store   store
	wake    Wake
	log     *zap.Logger
	metrics *metrics
	clock   func() time.Duration
	clocks  clocks       // nil in tests
	spawn   func(func()) // runs a slot; tests have another one
	service retry.Service
	poke    chan struct{} // poll now
	beating chan struct{} // one beat at a time, so that an older row does not follow

	mu        sync.Mutex
	offers    map[string]offer // by group
	slots     map[string]*slot // by name of the lease
	observed  observer
	beats     beats
	freeFor   map[string]int      // polls in which a job was free
	ended     map[string]int64    // the dead nodes whose sessions were ended, with their beats
	withheld  map[string]bool     // groups
	announced map[string][]string // names, by kind
	elsewhere map[string]bool     // announcements of other living nodes
	draining  bool
	empty     chan struct{} // closed when the last slot ends while draining

	expiries   int  // how often everything was given up
	identified bool // the log of the cluster is that of this node
}

var _ Member = (*Node)(nil)

// offer is work that the node takes.
type offer struct {
	group string
	names []string // of the leases
	job   bool
	start func(number int, s *slot)
}

// beats is the state of the node's own beat.
type beats struct {
	written bool          // since the start or the last expiry
	at      time.Duration // when the newest one that was stored began to be written
}

// New returns a node. It needs Postgres.
func New(cfg Config, info Info, d *db.DB, w Wake, log *zap.Logger) (*Node, error) {
	if d.Pool() == nil {
		return nil, errNotPostgres
	}
	s, err := newPostgres(d)
	if err != nil {
		return nil, err
	}
	n := newNode(cfg, info, s, w, log)
	n.clocks = dbclock.New(d)
	return n, nil
}

func newNode(cfg Config, info Info, s store, w Wake, log *zap.Logger) *Node {
	n := &Node{
		cfg: cfg, info: info, store: s, wake: w, log: log.Named("cluster"), clock: monotonic,
		spawn: func(f func()) { go f() }, poke: make(chan struct{}, 1), beating: make(chan struct{}, 1),
		withheld: map[string]bool{}, announced: map[string][]string{}, offers: map[string]offer{}, slots: map[string]*slot{}, freeFor: map[string]int{}, ended: map[string]int64{},
		observed: observer{deadAfter: cfg.DeadAfter, nodes: map[string]sighting{}},
	}
	if n.info.Name == "" {
		n.info.Name = hostName()
	}
	n.identified = info.Observer
	n.metrics = newMetrics(n)
	return n
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// Register registers the metrics.
func (n *Node) Register(reg prometheus.Registerer) error { return n.metrics.register(reg) }

// jobGroup is the group of a job, and the name of its lease.
func jobGroup(name string) string { return "job/" + name }

// JobGroup is the group of a job, for Withhold.
func JobGroup(name string) string { return jobGroup(name) }

func leaseName(group string, number int) string { return group + "/" + strconv.Itoa(number) }

// Run implements Jobs.
func (n *Node) Run(name string, job func(ctx context.Context, token int64)) {
	group := jobGroup(name)
	n.offer(offer{group: group, names: []string{group}, job: true, start: func(_ int, s *slot) {
		ctx := context.WithValue(s.keep, leaseKey{}, held(lease{n, s}))
		for ctx.Err() == nil {
			job(ctx, s.token)
			retry.Sleep(ctx, restartPause)
		}
	}})
}

// Follow implements Shares.
func (n *Node) Follow(group string, count int, start func(number int, token int64) (stop func(ctx context.Context))) {
	names := make([]string, count)
	for i := range names {
		names[i] = leaseName(group, i)
	}
	n.offer(offer{group: group, names: names, start: func(number int, s *slot) {
		stop := start(number, s.token)
		<-s.keep.Done()
		stop(s.own)
	}})
}

func (n *Node) offer(o offer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.offers[o.group]; ok {
		panic("cluster: " + o.group + " is used twice")
	}
	n.offers[o.group] = o
	n.pollSoon()
}

// Holds implements Shares.
func (n *Node) Holds(group string, number int, token int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.slots[leaseName(group, number)]
	return s != nil && s.token == token && n.valid(s)
}

// valid reports whether s is not lost, and expires all slots if the beat is too old.
// It is called with mu.
func (n *Node) valid(s *slot) bool {
	n.expire(n.clock())
	return s.own.Err() == nil
}

// alive reports whether the beat is young enough to work. It is called with mu.
func (n *Node) alive(now time.Duration) bool {
	return n.beats.written && now-n.beats.at < n.cfg.giveUpAfter()
}

// expire gives all leases up if the beat is too old. It is called with mu.
func (n *Node) expire(now time.Duration) {
	if !n.beats.written || n.alive(now) {
		return
	}
	n.beats.written = false
	n.expiries++
	count := 0
	for _, s := range n.slots {
		if s.own.Err() == nil {
			count++
		}
		s.lose()
	}
	n.log.Warn("beat not written in time: work given up", zap.Int("leases", count), zap.Duration("beat_age", now-n.beats.at))
}

// row returns the row of the node. It is called with mu.
func (n *Node) row() nodeRow {
	takes := []string{}
	for group := range n.offers {
		if !n.withheld[group] {
			takes = append(takes, group)
		}
	}
	for kind, names := range n.announced {
		for _, name := range names {
			takes = append(takes, announcement(kind, name))
		}
	}
	slices.Sort(takes)
	return nodeRow{
		id: n.info.ID, name: n.info.Name, version: n.info.Version, address: n.info.Address, roles: append([]string{}, n.info.Roles...),
		takes: takes, draining: n.draining,
	}
}

// beat writes the beat. The beat counts from the time before the write began. If it
// took so long that others may have seen none, everything is given up first.
func (n *Node) beat(ctx context.Context) error {
	if n.info.Observer {
		return nil
	}
	select {
	case n.beating <- struct{}{}:
		defer func() { <-n.beating }()
	case <-ctx.Done():
		return ctx.Err()
	}
	n.mu.Lock()
	row, began := n.row(), n.clock()
	n.mu.Unlock()
	// A statement that is given up may still be done, after the row was removed.
	if err := n.store.writeBeat(context.WithoutCancel(ctx), row); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.expire(n.clock())
	n.beats = beats{written: true, at: began}
	return nil
}

// poll looks at the cluster, notices lost leases, takes leases and gives some up. One
// goroutine calls it.
func (n *Node) poll(ctx context.Context) error {
	v, err := n.store.read(ctx)
	if err != nil {
		return err
	}
	n.mu.Lock()
	now := n.clock()
	n.expire(now)
	n.observed.recordBeats(v, n.info.ID, now)
	n.noteAnnounced(v)
	rows := map[string]leaseRow{}
	for _, l := range v.leases {
		rows[l.name] = l
	}
	n.loseTaken(rows)
	var todo changes
	switch {
	case n.draining:
		todo.release = n.unused(rows)
	case n.alive(now):
		todo = n.plan(v, rows)
	}
	todo.expiries = n.expiries
	for _, s := range todo.end {
		s.giveUp()
	}
	n.mu.Unlock()
	return n.apply(ctx, todo)
}

// unused returns the leases that the database has for this node, after a release that
// failed, and that it does not use. It is called with mu.
func (n *Node) unused(rows map[string]leaseRow) (unused []leaseRow) {
	for name, l := range rows {
		if l.node == n.info.ID && n.slots[name] == nil {
			unused = append(unused, l)
		}
	}
	return unused
}

// loseTaken ends the slots whose lease another node has taken. It is called with mu.
func (n *Node) loseTaken(rows map[string]leaseRow) {
	for name, s := range n.slots {
		l := rows[name]
		if s.releasing || s.own.Err() != nil || l.node == n.info.ID && l.token == s.token {
			continue
		}
		n.log.Warn("lease lost: another node has taken it over", zap.String("lease", name), zap.Int64("token", s.token))
		s.lose()
	}
}

// taking is a lease to take.
type taking struct {
	claim
	offer  offer
	number int
	dead   string // its owner, if that is a dead node
}

// changes is what poll decides.
type changes struct {
	take    []taking
	end     []*slot
	release []leaseRow // leases that the database has for this node and that it does not use
	dead    []nodeRow  // nodes whose rows still have groups

	expiries int // of the node, when it decided
}

// plan decides. It is called with mu.
func (n *Node) plan(v view, rows map[string]leaseRow) (c changes) {
	for _, other := range v.nodes {
		if len(other.takes) > 0 && n.observed.nodes[other.id].dead {
			c.dead = append(c.dead, other)
		}
	}
	for _, o := range n.offers {
		g := n.groupOf(o, v, rows)
		if n.giveAway(o, g, rows, &c) {
			continue
		}
		take, giveUp := g.share()
		if o.job {
			take, giveUp = n.planJob(o.group, g), nil
		}
		for _, number := range take {
			l := rows[o.names[number]]
			t := taking{claim: claim{name: o.names[number], node: n.info.ID, token: l.token, beat: n.observed.beatOf(l.node)}, offer: o, number: number}
			if l.node != "" && l.node != n.info.ID {
				t.dead = l.node
			}
			c.take = append(c.take, t)
		}
		for _, number := range giveUp {
			if s := n.slots[o.names[number]]; s != nil {
				c.end = append(c.end, s)
			} else {
				c.release = append(c.release, rows[o.names[number]])
			}
		}
	}
	return c
}

// planJob returns what to take of a job. A node takes a job that the database has for
// it, and a free one at once if it is the preferred node, else when the job stays
// free. Jobs do not move while their node lives.
func (n *Node) planJob(name string, g group) (take []int) {
	if g.holds[0] || g.busy[0] || g.owners[0] != "" && g.owners[0] != n.info.ID {
		delete(n.freeFor, name)
		return nil
	}
	n.freeFor[name]++
	if g.owners[0] == "" && preferred(name, g.members) != n.info.ID && n.freeFor[name] <= patience {
		return nil
	}
	return []int{0}
}

// groupOf returns what the plan for an offer needs.
func (n *Node) groupOf(o offer, v view, rows map[string]leaseRow) group {
	g := group{self: n.info.ID, members: []string{n.info.ID}, owners: make([]string, len(o.names)), holds: make([]bool, len(o.names)), busy: make([]bool, len(o.names))}
	for _, other := range v.nodes {
		if other.id != n.info.ID && !other.draining && n.observed.living(other.id) && slices.Contains(other.takes, o.group) {
			g.members = append(g.members, other.id)
		}
	}
	for i, name := range o.names {
		if owner := rows[name].node; owner == n.info.ID || owner != "" && n.observed.living(owner) {
			g.owners[i] = owner
		}
		if s := n.slots[name]; s != nil {
			g.holds[i] = s.keep.Err() == nil
			g.busy[i] = !g.holds[i]
		}
	}
	return g
}

// apply takes and releases leases in the database.
func (n *Node) apply(ctx context.Context, c changes) error {
	for _, dead := range c.dead { // also those without leases
		n.endSessions(ctx, dead.id, dead.beat)
	}
	for _, l := range c.release {
		if err := n.store.release(ctx, l); err != nil {
			return err
		}
		n.wake.Publish(topic, "")
	}
	for _, t := range c.take {
		if t.dead != "" {
			n.endSessions(ctx, t.dead, t.beat)
		}
		token, err := n.store.take(ctx, t.claim)
		if err != nil {
			return err
		}
		if token != 0 && !n.begin(t, token, c.expiries) {
			if err := n.store.release(ctx, leaseRow{t.name, n.info.ID, token}); err != nil {
				return err
			}
		}
	}
	return nil
}

// endSessions ends the sessions of a dead node once, so that its locks do not last, and
// empties the groups of its row.
func (n *Node) endSessions(ctx context.Context, node string, beat int64) {
	n.mu.Lock()
	last, known := n.ended[node]
	n.mu.Unlock()
	if known && last == beat {
		return
	}
	if err := n.store.endSessions(ctx, node, beat); err != nil {
		n.log.Warn("sessions of a dead node not ended", zap.String("node", node), zap.Error(err))
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended[node] = beat
}

// begin starts the work of a lease that was taken. It returns false if the node may
// not work any more, or may not have been alive all the time since it decided to take
// the lease: then another node can have taken it already.
func (n *Node) begin(t taking, token int64, expiries int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.clock()
	n.expire(now)
	if n.draining || !n.alive(now) || n.expiries != expiries || n.slots[t.name] != nil {
		return false
	}
	if t.dead != "" {
		n.metrics.takeovers.Inc()
		n.log.Info("lease of a dead node taken over", zap.String("lease", t.name), zap.Int64("token", token), zap.String("from", t.dead))
	}
	s := newSlot(t.name, token, t.offer)
	n.slots[t.name] = s
	n.spawn(func() { n.work(t.offer, t.number, s) })
	return true
}
