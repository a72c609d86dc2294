package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/guidonhq/guidon/core/cluster/notify"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// quick are intervals for tests that do not measure.
func quick() Config { return Config{Beat: 100 * time.Millisecond, DeadAfter: 2 * time.Second} }

// steady is for tests in which no node dies: none is found dead because the machine is slow.
func steady() Config { return Config{Beat: 100 * time.Millisecond, DeadAfter: time.Hour} }

// testPatience limits the wait for something that must happen.
const testPatience = 3 * time.Minute

// works records what runs where.
type works struct {
	mu   sync.Mutex
	node map[string]string // by lease
}

func (w *works) set(lease, node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.node == nil {
		w.node = map[string]string{}
	}
	w.node[lease] = node
}

// counts returns the number of leases by node.
func (w *works) counts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := map[string]int{}
	for _, node := range w.node {
		counts[node]++
	}
	return counts
}

// process is a server with a node, as one process has it.
type process struct {
	*Node
	db  *db.DB
	hub *notify.Hub
}

// launch starts a server that follows 6 numbers and runs 2 jobs.
func launch(t *testing.T, url, id string, cfg Config, w *works) *process {
	t.Helper()
	p := newProcess(t, url, Info{ID: id, Name: id}, cfg)
	p.Follow("log", 6, func(number int, token int64) func(context.Context) {
		w.set(leaseName("log", number), id)
		return func(context.Context) { w.set(leaseName("log", number), "") }
	})
	for _, name := range []string{"a", "b"} {
		p.Run(name, func(ctx context.Context, _ int64) {
			w.set(jobGroup(name), id)
			<-ctx.Done()
			w.set(jobGroup(name), "")
		})
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

func newProcess(t *testing.T, url string, info Info, cfg Config) *process {
	t.Helper()
	d, err := db.OpenServer(t.Context(), db.Config{URL: url, SessionName: info.ID}, "", zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	if !d.WaitReady(t.Context()) { // OpenServer returns before a long migration has ended
		t.Fatal("the database is not ready")
	}
	hub := notify.New(d, zaptest.NewLogger(t))
	n, err := New(cfg, info, d, hub, zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		_ = n.Stop(ctx)
		_ = hub.Stop(ctx)
		_ = d.Close()
	})
	return &process{n, d, hub}
}

// kill ends the goroutines of the node: no beat, nothing released. Its work goes on, as
// that of a process that is stopped goes on later.
func (p *process) kill() { _ = p.service.Stop(context.Background()) }

// eventually waits until ok is true, and returns how long that took.
func eventually(t *testing.T, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > testPatience {
			t.Fatalf("not within %s: %s", testPatience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(began)
}

// balanced reports whether the nodes, and no others, have all 8 leases, and each at
// least least of them.
func balanced(w *works, least int, nodes ...string) func() bool {
	return func() bool {
		counts, sum := w.counts(), 0
		for _, n := range nodes {
			if counts[n] < least {
				return false
			}
			sum += counts[n]
		}
		return sum == 8
	}
}

// A node that dies without a word: others take its work over after dead_after.
func TestTakeOverAfterKill(t *testing.T) {
	t.Parallel()
	url, w := dbtest.PostgresURL(t), &works{}
	cfg := DefaultConfig()
	launch(t, url, "n1", cfg, w)
	two := launch(t, url, "n2", cfg, w)
	launch(t, url, "n3", cfg, w)
	eventually(t, "three nodes share", balanced(w, 2, "n1", "n2", "n3"))
	two.kill()
	took := eventually(t, "two nodes share", balanced(w, 3, "n1", "n3"))
	var since float64 // seconds, by the clock of the database
	row := two.db.Read(t.Context()).QueryRowContext(t.Context(), "SELECT extract(epoch FROM clock_timestamp() - seen_at) FROM cluster_nodes WHERE id = 'n2'")
	if err := row.Scan(&since); err != nil {
		t.Fatal(err)
	}
	if least := cfg.DeadAfter.Seconds(); since < least {
		t.Errorf("taken over %.1f s after the last beat, want at least %.1f s", since, least)
	}
	t.Logf("taken over %s after the kill, %.1f s after the last beat", took, since)
}

// A node that starts after another was found dead leaves no part for that one, although
// it has not seen for itself that it is dead.
func TestStartAfterADeath(t *testing.T) {
	t.Parallel()
	url, w := dbtest.PostgresURL(t), &works{}
	one := launch(t, url, "n1", quick(), w)
	two := launch(t, url, "n2", quick(), w)
	eventually(t, "two nodes share", balanced(w, 3, "n1", "n2"))
	idle := newProcess(t, url, Info{ID: "idle", Name: "idle"}, quick())
	idle.Follow("log", 6, func(int, int64) func(context.Context) { return func(context.Context) {} })
	if err := idle.beat(t.Context()); err != nil { // and no more: it dies without a lease
		t.Fatal(err)
	}
	one.kill()
	eventually(t, "one node has all", balanced(w, 8, "n2"))
	eventually(t, "the groups of the dead nodes are empty", func() bool {
		v, err := two.store.read(t.Context())
		return err == nil && !slices.ContainsFunc(v.nodes, func(r nodeRow) bool { return r.id != "n2" && len(r.takes) > 0 })
	})
	slow := quick()
	slow.DeadAfter = time.Hour
	launch(t, url, "n3", slow, w)
	eventually(t, "two nodes share again", balanced(w, 3, "n2", "n3"))
	if err := two.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new node has all", balanced(w, 8, "n3"))
}

// A node that drains: others have its work without waiting for its death.
func TestDrainHandsOver(t *testing.T) {
	t.Parallel()
	url, w := dbtest.PostgresURL(t), &works{}
	launch(t, url, "n1", steady(), w)
	two := launch(t, url, "n2", steady(), w)
	launch(t, url, "n3", steady(), w)
	eventually(t, "three nodes share", balanced(w, 2, "n1", "n2", "n3"))
	if err := two.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two nodes share long before a death is noticed", balanced(w, 3, "n1", "n3"))
}

// A node that was stopped for longer than dead_after notices it before it does anything
// else, and cannot write even if it does not notice. A transaction that it had open is
// ended.
// A node that withholds itself gives its numbers, and not its jobs, to the others. If all
// do, each keeps its own.
func TestWithhold(t *testing.T) {
	t.Parallel()
	url, w := dbtest.PostgresURL(t), &works{}
	nodes := map[string]*process{}
	for _, id := range []string{"one", "two"} {
		nodes[id] = launch(t, url, id, steady(), w)
		defer nodes[id].kill()
	}
	numbers := func(node string) (n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for lease, owner := range w.node {
			if owner == node && strings.HasPrefix(lease, "log/") {
				n++
			}
		}
		return n
	}
	even := func() bool { return numbers("one") == 3 && numbers("two") == 3 }
	eventually(t, "the numbers are divided", even)
	nodes["one"].Withhold("log", true)
	eventually(t, "the other node has all numbers", func() bool { return numbers("two") == 6 })
	eventually(t, "two jobs are owned", func() bool {
		st, err := nodes["two"].Status(t.Context())
		return err == nil && len(st.Nodes) == 2 && len(st.Nodes[0].Jobs)+len(st.Nodes[1].Jobs) == 2
	})
	nodes["two"].Withhold("log", true)
	polls := func() (n int64) { // of the rows of both nodes
		v, err := nodes["one"].store.read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range v.nodes {
			n += row.beat
		}
		return n
	}
	from := polls()
	eventually(t, "both nodes have looked many times", func() bool { return polls() > from+20 })
	if n := numbers("two"); n != 6 {
		t.Errorf("a node has %d numbers after all have withheld themselves, want 6", n)
	}
	nodes["one"].Withhold("log", false)
	eventually(t, "the node has all numbers", func() bool { return numbers("one") == 6 })
	nodes["two"].Withhold("log", false)
	eventually(t, "the numbers are divided again", even)
}

// A job that a node withholds itself from runs on the other node, and stays there.
func TestWithholdJob(t *testing.T) {
	t.Parallel()
	url, w := dbtest.PostgresURL(t), &works{}
	one := launch(t, url, "one", steady(), w)
	defer one.kill()
	runs := func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.node[jobGroup("a")]
	}
	one.Withhold(JobGroup("a"), true)
	eventually(t, "a single node has the job all the same", func() bool { return runs() == "one" })
	two := launch(t, url, "two", steady(), w)
	defer two.kill()
	eventually(t, "the other node has the job", func() bool { return runs() == "two" })
	one.Withhold(JobGroup("a"), false)
	two.Withhold(JobGroup("a"), true)
	eventually(t, "the job goes back", func() bool { return runs() == "one" })
}

// What a node announces is known to the others while it lives.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	url, w := dbtest.PostgresURL(t), &works{}
	one := launch(t, url, "one", quick(), w)
	defer one.kill()
	one.Announce("sink", []string{"own"})
	if !one.Announced("sink", "own") || one.Announced("sink", "other") {
		t.Error("a node does not know its own announcement")
	}
	two := launch(t, url, "two", quick(), w)
	two.Announce("sink", []string{"other", "more"})
	eventually(t, "the announcement is known", func() bool { return one.Announced("sink", "more") && two.Announced("sink", "own") })
	two.Announce("sink", []string{"other"})
	eventually(t, "a removed name is no more", func() bool { return !one.Announced("sink", "more") })
	if !one.Announced("sink", "other") {
		t.Error("the other name is gone")
	}
	two.kill()
	eventually(t, "the announcement of a dead node ends", func() bool { return !one.Announced("sink", "other") })
	if !one.Announced("sink", "own") {
		t.Error("its own announcement is gone")
	}
}

func TestPausedNodeIsFenced(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	cfg := quick()
	cfg.DeadAfter = 6 * time.Second // the owner writes between two beats, which takes a while on a slow machine
	old := newProcess(t, url, Info{ID: "old", Name: "old"}, cfg)
	type start struct {
		ctx   context.Context
		token int64
	}
	starts := make(chan start, 10)
	old.Run("job", func(ctx context.Context, token int64) {
		starts <- start{ctx, token}
		<-ctx.Done()
	})
	// Its goroutines do not run: the test calls them, and then stops calling.
	eventually(t, "the job starts", func() bool {
		err := errors.Join(old.beat(t.Context()), old.poll(t.Context())) // a busy database is waited for
		return err == nil && len(starts) > 0
	})
	first := <-starts
	if err := old.db.Tx(first.ctx, func(ctx context.Context) error { return Fence(context.WithoutCancel(ctx)) }); err != nil {
		t.Fatalf("the owner cannot write: %v", err)
	}
	begun, resume, result := make(chan bool), make(chan bool), make(chan error)
	go func() { // a transaction with the fence that lasts through the pause
		ctx := context.WithoutCancel(first.ctx)
		result <- old.db.Tx(ctx, func(ctx context.Context) error {
			err := Fence(ctx)
			begun <- true
			<-resume
			return err
		})
	}()
	<-begun

	w := &works{}
	next := newProcess(t, url, Info{ID: "new", Name: "new"}, cfg)
	taken := make(chan int64, 1)
	next.Run("job", func(ctx context.Context, token int64) {
		w.set("job", "new")
		taken <- token
		<-ctx.Done()
	})
	if err := next.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if token := <-taken; token <= first.token {
		t.Errorf("the new owner has the token %d after %d", token, first.token)
	}
	// The old one goes on.
	if Valid(first.ctx) {
		t.Error("the lease is valid after the pause")
	}
	if first.ctx.Err() == nil {
		t.Error("the context goes on after the lease was found invalid")
	}
	close(resume)
	if err := <-result; err == nil {
		t.Error("a transaction from before the takeover committed")
	}
	// As if it had not noticed:
	if ok, err := old.store.fence(t.Context(), leaseRow{jobGroup("job"), "old", first.token}); ok || err != nil {
		t.Errorf("the fence lets the old owner pass (%v)", err)
	}
	if err := Fence(context.WithoutCancel(first.ctx)); !errors.Is(err, ErrLost) {
		t.Errorf("Fence: %v, want ErrLost", err)
	}
}

// While Postgres is away nodes give their work up in time; afterwards they go on with
// what they had.
func TestPostgresAway(t *testing.T) {
	t.Parallel()
	k := dbtest.StartKillable(t)
	w := &works{}
	// Long enough that no node finds the other one dead because it reached the
	// database first.
	cfg := Config{Beat: 100 * time.Millisecond, DeadAfter: 12 * time.Second}
	one := launch(t, k.URL, "n1", cfg, w)
	launch(t, k.URL, "n2", cfg, w)
	eventually(t, "two nodes share", balanced(w, 3, "n1", "n2"))
	parts := func() (list []string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for lease, node := range w.node {
			if strings.HasPrefix(lease, "log/") {
				list = append(list, lease+" "+node)
			}
		}
		slices.Sort(list)
		return list
	}
	before := parts()
	k.Kill(t)
	took := eventually(t, "both give up", func() bool { return w.counts()[""] == 8 })
	t.Logf("given up %s after the kill", took)
	if one.Holds("log", 0, 1) {
		t.Error("a lease is held without a beat")
	}
	k.Start(t)
	eventually(t, "two nodes share again", balanced(w, 3, "n1", "n2"))
	if after := parts(); !slices.Equal(before, after) {
		t.Errorf("partitions moved: %v, then %v", before, after)
	}
}

func TestTwoClustersOnOneDatabase(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	for i, log := range []string{"topic-a", "topic-a", "topic-b"} {
		p := newProcess(t, url, Info{ID: fmt.Sprint("n", i), Name: "n", LogID: log}, steady())
		err := p.Start(t.Context())
		if want := log == "topic-b"; (err != nil) != want {
			t.Errorf("node %d: %v", i, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "topic-a") || !strings.Contains(err.Error(), "topic-b")) {
			t.Errorf("the error does not name the logs: %v", err)
		}
	}
}

// The log of a cluster is replaced, or left for journals of the servers, only by a node
// that says so, and when no other node uses it any more.
func TestLogOfAClusterIsReplaced(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	start := func(id, log string, replace bool) (*process, error) {
		p := newProcess(t, url, Info{ID: id, Name: id, LogID: log, ReplaceLog: replace}, steady())
		return p, p.Start(t.Context())
	}
	first, err := start("first", "topic-a", false)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node is seen", func() bool {
		s, err := first.Status(t.Context())
		return err == nil && len(s.Nodes) == 1
	})
	if _, err := start("alone", "", false); err == nil || !strings.Contains(err.Error(), "topic-a") {
		t.Errorf("a node without a log: %v", err)
	}
	for _, log := range []string{"topic-b", ""} {
		if _, err := start("other"+log, log, true); err == nil {
			t.Errorf("a living node lost its log to %q", log)
		}
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, log := range []string{"topic-b", ""} {
		p, err := start("next"+log, log, true)
		if err != nil {
			t.Errorf("replaced by %q: %v", log, err)
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := start("last", "", false); err != nil {
		t.Errorf("a cluster that has left its log: %v", err)
	}
}

// A log is replaced only while no node uses another one, also one that starts meanwhile.
func TestReplaceLog(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	old := func(id string) *process {
		return newProcess(t, url, Info{ID: id, Name: id, LogID: "topic-a"}, steady())
	}
	first := old("first")
	if err := first.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	replace := func(log string, during func()) error {
		return first.db.Tx(t.Context(), func(ctx context.Context) error {
			if err := ReplaceLog(ctx, first.db, log); err != nil {
				return err
			}
			during()
			return nil
		})
	}
	for _, log := range []string{"topic-b", "topic-a"} { // the same one has other partitions
		if err := replace(log, func() {}); err == nil || !strings.Contains(err.Error(), "(first, seen ") {
			t.Errorf("replaced by %s while a node uses the log: %v", log, err)
		}
	}
	if err := CheckNoNodes(t.Context(), first.db, "this"); err == nil || !strings.Contains(err.Error(), "(first, seen ") {
		t.Errorf("the running node is not named: %v", err)
	}
	again := old("again")
	if err := again.Start(t.Context()); err != nil {
		t.Errorf("a node of the log that was not replaced: %v", err)
	}
	for _, p := range []*process{again, first} {
		if err := p.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := CheckNoNodes(t.Context(), first.db, "this"); err != nil {
		t.Error(err)
	}
	late, started := old("late"), make(chan error, 1)
	if err := replace("topic-b", func() {
		go func() { started <- late.Start(t.Context()) }()
		eventually(t, "the node has written its row", func() bool {
			v, err := late.store.read(t.Context())
			return err == nil && len(v.nodes) == 1
		})
	}); err != nil {
		t.Fatal(err)
	}
	if err := <-started; err == nil || !strings.Contains(err.Error(), "topic-b") {
		t.Errorf("a node of the old log starts while it is replaced: %v", err)
	}
	if v, err := late.store.read(t.Context()); err != nil || len(v.nodes) != 0 {
		t.Errorf("the refused node has left %v, %v", v.nodes, err)
	}
}

// A stopped node leaves no row; a dead one is shown as dead.
func TestStatus(t *testing.T) {
	t.Parallel()
	url, w := dbtest.PostgresURL(t), &works{}
	one := launch(t, url, "n1", quick(), w)
	two := launch(t, url, "n2", quick(), w)
	three := launch(t, url, "n3", quick(), w)
	eventually(t, "three nodes share", balanced(w, 2, "n1", "n2", "n3"))
	if err := three.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two nodes share", balanced(w, 3, "n1", "n2"))
	two.kill()
	eventually(t, "one node has all", balanced(w, 8, "n1"))
	var st Status
	defer func() {
		if t.Failed() {
			t.Logf("the last status: %+v", st)
		}
	}()
	eventually(t, "the status shows a living and a dead node", func() bool {
		var err error
		if st, err = one.Status(t.Context()); err != nil || len(st.Nodes) != 2 || !st.Clustered || st.Node != "n1" || len(st.Free) != 0 {
			return false
		}
		living, dead := st.Nodes[0], st.Nodes[1]
		return living.State == "alive" && len(living.Partitions) == 6 && len(living.Jobs) == 2 && living.BeatAge <= 30 &&
			dead.State == "dead" && dead.BeatAge >= quick().DeadAfter.Seconds() && len(dead.Partitions) == 0
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	for _, c := range []Config{{Beat: time.Second, DeadAfter: 3 * time.Second}, {DeadAfter: time.Minute}, {Beat: time.Second, DeadAfter: 2 * time.Hour}} {
		if c.Validate() == nil {
			t.Errorf("%+v is valid", c)
		}
	}
	on := Config{Enabled: true}
	for url, ok := range map[string]bool{"": false, "sqlite:x": false, "postgres://h/d": true, "postgresql://h/d": true} {
		if err := on.CheckDatabase(url); (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := New(on, Info{}, dbtest.SQLite(t), nil, zaptest.NewLogger(t)); err == nil {
		t.Error("a cluster on SQLite")
	}
}
