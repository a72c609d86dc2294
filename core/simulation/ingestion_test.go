package simulation_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uptrace/bun"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	_ "github.com/guidonhq/guidon/core/db/sqlite" // opens the files
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/simulation"
	"github.com/guidonhq/guidon/sdk"
)

// seeds returns the seeds of a test: GUIDON_SEED names one, GUIDON_SEEDS their number.
func seeds(t *testing.T, usual int) (list []uint64) {
	if s := os.Getenv("GUIDON_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("GUIDON_SEED: %v", err)
		}
		return []uint64{n}
	}
	n, first := usual, uint64(1)
	if testing.Short() {
		n = n * 2 / 5
	}
	if s := os.Getenv("GUIDON_SEEDS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatalf("GUIDON_SEEDS: %v", err)
		}
		first = uint64(time.Now().UnixNano()) // other seeds each time
	}
	for i := range n {
		list = append(list, first+uint64(i))
	}
	return list
}

// workers is the number of seeds that run at once.
const workers = 4

// forEachSeed runs test in a bubble for each seed.
func forEachSeed(t *testing.T, usual int, test func(t *testing.T, seed uint64)) {
	list := make(chan uint64)
	go func() {
		defer close(list)
		for _, seed := range seeds(t, usual) {
			list <- seed
		}
	}()
	for i := range workers {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			for seed := range list {
				if t.Failed() {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					defer func() {
						if t.Failed() {
							t.Logf("repeat with GUIDON_SEED=%d go test ./core/simulation -run '%s'", seed, t.Name())
						}
					}()
					test(t, seed)
				})
			}
		})
	}
}

// Events that are accepted while the server is killed and started again, the database
// is away and sinks are slow, reject, crash and answer late: each is stored once, and
// each sink gets it in the order of its distinct id.
func TestIngestion(t *testing.T) {
	template := migratedFile(t)
	forEachSeed(t, 50, func(t *testing.T, seed uint64) { newWorld(t, seed, template).simulate() })
}

// migratedFile returns the content of a database with the newest schema.
func migratedFile(t *testing.T) []byte {
	t.Helper()
	file := t.TempDir() + "/guidon.db"
	d, err := db.Open(t.Context(), db.Config{URL: "sqlite:" + file}, "")
	if err == nil {
		err = d.Migrate(t.Context())
	}
	if err == nil {
		_, err = d.Write(t.Context()).NewRaw("CREATE TABLE sim_stored (n INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT NOT NULL)").Exec(t.Context())
	}
	if err == nil {
		err = dropUnused(t.Context(), d)
	}
	if err == nil {
		err = d.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// usedTables are the tables that a simulation needs. Each connection parses the schema:
// the others cost most of the time.
var usedTables = regexp.MustCompile(`^(sim_|event|person|distinct|group|ingestion|dead_letters|sink_pauses|notification|schema|bun|sqlite)`)

func dropUnused(ctx context.Context, d *db.DB) error {
	var tables []string
	err := d.Read(ctx).NewRaw("SELECT name FROM sqlite_master WHERE type = 'table'").Scan(ctx, &tables)
	if err == nil {
		_, err = d.Write(ctx).NewRaw("PRAGMA foreign_keys = OFF").Exec(ctx)
	}
	for _, name := range tables {
		if err == nil && !usedTables.MatchString(name) {
			_, err = d.Write(ctx).NewRaw("DROP TABLE ?", bun.Ident(name)).Exec(ctx)
		}
	}
	if err == nil {
		_, err = d.Write(ctx).NewRaw("VACUUM").Exec(ctx)
	}
	return err
}

// world is what outlives the processes of a simulation.
type world struct {
	t       *testing.T
	plan    *simulation.Plan
	journal *simulation.Journal
	file    string
	truth   *db.DB // the file without failures
	sinks   []*destination
	oracle  *oracle

	mu      sync.Mutex
	current *simulation.Process // nil between two processes
	started chan struct{}       // closed when the next process starts
}

func newWorld(t *testing.T, seed uint64, template []byte) *world {
	w := &world{t: t, plan: simulation.NewPlan(seed), journal: simulation.NewJournal(), file: t.TempDir() + "/guidon.db", started: make(chan struct{})}
	if err := os.WriteFile(w.file, template, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.truth, err = db.Open(t.Context(), db.Config{URL: "sqlite:" + w.file}, ""); err != nil {
		t.Fatal(err)
	}
	w.oracle = newOracle(w)
	w.journal.OnCommit = w.oracle.checkCommit
	for _, p := range []struct {
		name  string
		props sdk.SinkProperties
	}{
		{"keys", sdk.SinkProperties{Ordering: sdk.OrderPerKey, MaxInFlight: 4, MaxEvents: 5}},
		{"staged", sdk.SinkProperties{Ordering: sdk.OrderPerKey, Commit: sdk.CommitOnFlush, MaxEvents: 4, MaxStagedEvents: 12, MaxStagedAge: 2 * time.Second}},
		{"total", sdk.SinkProperties{Ordering: sdk.OrderTotal, MaxInFlight: 3, MaxEvents: 7}},
	} {
		w.sinks = append(w.sinks, &destination{world: w, name: p.name, props: p.props, has: map[string]bool{}})
	}
	return w
}

// failf fails the simulation. It may be called by any goroutine of the bubble.
func (w *world) failf(format string, args ...any) { w.t.Errorf(format, args...) }

// tracef adds a line to the trace, which GUIDON_SEED prints.
func (w *world) tracef(format string, args ...any) {
	if os.Getenv("GUIDON_SEED") != "" {
		w.t.Logf("%s "+format, append([]any{time.Now().Format("15:04:05.000")}, args...)...)
	}
}

// simulate runs processes until everything is delivered.
func (w *world) simulate() {
	produced := make(chan struct{})
	go func() {
		defer close(produced)
		w.produce()
	}()
	for n := 0; ; n++ {
		select {
		case <-produced:
			w.plan.Calm()
		default:
		}
		if w.run(n) || w.t.Failed() {
			break
		}
	}
	if w.t.Failed() {
		w.plan.Calm()
		w.start(nil)
	}
	<-produced
	w.oracle.checkEnd()
	if err := w.truth.Close(); err != nil {
		w.t.Error(err)
	}
}

// start makes p the process that accepts events; nil ends the producer.
func (w *world) start(p *simulation.Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current = p
	close(w.started)
	w.started = make(chan struct{})
}

// process returns the running process and a channel that is closed when the next one
// starts.
func (w *world) process() (*simulation.Process, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current, w.started
}

// lastRun is the number of processes after which nothing fails any more.
const lastRun = 40

// drainTime is how long the last process may take, in virtual time. An event that is
// doubted to crash a plugin takes ten minutes.
const drainTime = time.Hour

// run runs one process. It returns true if nothing is left to do behind it.
func (w *world) run(n int) (done bool) {
	if n >= lastRun {
		w.plan.Calm()
	}
	p := simulation.NewProcess(w.plan, fmt.Sprintf("run %d", n))
	defer p.End()
	d, err := db.OpenWrapped(context.Background(), w.file, p.Connector)
	if err != nil {
		w.failf("open the database: %v", err)
		return true
	}
	defer func() { _ = d.Close() }()
	worker, deliver := w.newServices(p, d)
	calm := w.plan.IsCalm()
	started := worker.Start(context.Background()) == nil && deliver.Start(context.Background()) == nil
	if started {
		w.start(p)
		go w.outages(p)
		done = w.live(p, calm)
	}
	stop, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	w.tracef("run %d ends by itself: %v", n, p.HasEnded())
	if !done && (p.HasEnded() || w.plan.Draw("stop").IntN(2) == 0) {
		p.End()
		cancel()
	}
	_ = worker.Stop(stop)
	_ = deliver.Stop(stop)
	return done
}

// live waits until the process has ended or shall stop; true if it has delivered
// everything.
func (w *world) live(p *simulation.Process, calm bool) (done bool) {
	if !calm {
		life := time.Duration(w.plan.Draw("life").ExpFloat64() * float64(10*time.Second))
		_ = p.Sleep(context.Background(), life)
		return false
	}
	for end := time.Now().Add(drainTime); !w.oracle.isDrained(); {
		if time.Now().After(end) {
			w.failf("not everything is delivered in %s: %v of %d records", drainTime, w.journal.Readers(), w.journal.Last())
			return true
		}
		if p.Sleep(context.Background(), time.Second) != nil || w.t.Failed() {
			return true
		}
	}
	return true
}

// outages takes the database away now and then.
func (w *world) outages(p *simulation.Process) {
	for !w.plan.IsCalm() {
		d := w.plan.Draw("outage")
		if p.Sleep(context.Background(), time.Duration(d.Int64N(int64(30*time.Second)))) != nil {
			return
		}
		p.SetOutage(true)
		if p.Sleep(context.Background(), time.Duration(d.Int64N(int64(4*time.Second)))) != nil {
			return
		}
		p.SetOutage(false)
	}
}

func (w *world) newServices(p *simulation.Process, d *db.DB) (*pipeline.Worker, *delivery.Service) {
	cfg := ingestion.DefaultConfig()
	cfg.Worker.MaxEvents = 20
	cfg.Worker.RetryMax = 2 * time.Second
	cfg.Deliver.Start = "begin"
	cfg.Deliver.Timeout, cfg.Deliver.RetryMax = sinkTimeout, sinkRetryMax
	log := w.journal.Open(p)
	e := events.New(events.DefaultConfig(), d, zap.NewNop(), nil)
	people := persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil)
	stages := []pipeline.Stage{&recorder{d}, pipeline.PersonStage(people), pipeline.EventStage(e, nil)}
	worker, err := pipeline.NewWorker(cfg.Worker, event.DefaultLimits(), log, d, stages, e, pipeline.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		panic(err)
	}
	var sinks sinkSet
	for _, s := range w.sinks {
		sinks = append(sinks, newPlugin(s, p))
	}
	deliver, err := delivery.NewService(cfg.Deliver, event.DefaultLimits(), log, d, sinks, delivery.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		panic(err)
	}
	return worker, deliver
}

// recorder is a stage that records the order of events, and fails for poison.
type recorder struct{ db *db.DB }

func (*recorder) Name() string { return "recorder" }

func (r *recorder) Process(ctx context.Context, batch []*sdk.Event) error {
	for _, ev := range batch {
		if ev.Name == poisonWorker {
			return fmt.Errorf("event %s is poison", ev.UUID)
		}
		if _, err := r.db.SQLTx(ctx).ExecContext(ctx, "INSERT INTO sim_stored (uuid) VALUES (?)", ev.UUID); err != nil {
			return err
		}
	}
	return nil
}
