package pglog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/eventlog/pglog"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// patience is how long a test waits for something that must happen.
const patience = time.Minute

func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return c
}

func appendText(t testing.TB, l *pglog.Log, partition int, text string) error {
	t.Helper()
	return l.Append(ctx(t), []eventlog.Part{{Partition: partition, Data: []byte(text)}})
}

// readTexts reads n records of a partition after a number. Their numbers have no gaps.
func readTexts(t testing.TB, l *pglog.Log, partition int, after uint64, n int) (texts []string) {
	t.Helper()
	p, c := l.Partition(partition, 0), ctx(t)
	for len(texts) < n {
		must(t, p.Wait(c, after))
		records, err := p.Read(c, after, n-len(texts), 1<<20)
		must(t, err)
		for _, r := range records {
			if r.Seq != after+1 {
				t.Fatalf("record %d comes after %d", r.Seq, after)
			}
			after = r.Seq
			texts = append(texts, string(r.Data))
		}
	}
	return texts
}

func exec(t testing.TB, d *db.DB, query string, args ...any) {
	t.Helper()
	_, err := d.Pool().Exec(ctx(t), query, args...)
	must(t, err)
}

// until polls the condition of a test.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so: %s", what)
		}
	}
}

// blockAppends holds the lock of appends until release is called.
func blockAppends(t testing.TB, d *db.DB) (release func()) {
	t.Helper()
	tx, err := d.Pool().Begin(ctx(t))
	must(t, err)
	_, err = tx.Exec(ctx(t), "SELECT pg_advisory_xact_lock(5497853124)")
	must(t, err)
	return func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }
}

const waitingAppends = "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%log_append%' AND wait_event = 'advisory'"

func count(t testing.TB, d *db.DB, query string) (n int) {
	t.Helper()
	must(t, d.Pool().QueryRow(ctx(t), query).Scan(&n))
	return n
}

// A connection that the server ends before the commit stores nothing. The append fails,
// and its repetition is stored once.
func TestConnectionEndsBeforeTheCommit(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	l := n.open(t)
	release := blockAppends(t, n.db)
	defer release()
	failed := make(chan error, 1)
	go func() { failed <- appendText(t, l, 1, "first") }()
	until(t, "the append waits", func() bool { return count(t, n.db, "SELECT count(*) "+waitingAppends) == 1 })
	exec(t, n.db, "SELECT pg_terminate_backend(pid) "+waitingAppends)
	if err := <-failed; fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	if l.Broken() == nil {
		t.Error("a log that stores nothing is not broken")
	}
	release()
	must(t, appendText(t, l, 1, "first"))
	if got := fmt.Sprint(readTexts(t, l, 1, 0, 1)); got != "[first]" || count(t, n.db, "SELECT sum(records)::INT FROM log_batches") != 1 {
		t.Errorf("got %s", got)
	}
	if err := l.Broken(); err != nil {
		t.Errorf("broken: %v", err)
	}
}

// deafProxy forwards connections to a server until it is deaf: then it ends each one in
// place of the next answer.
type deafProxy struct {
	deaf atomic.Bool
	ends atomic.Int32 // connections ended
}

// listen returns the URL of the proxy before the server of a URL.
func (p *deafProxy) listen(t *testing.T, server string) string {
	t.Helper()
	u, err := url.Parse(server)
	must(t, err)
	query := u.Query()
	network, target := "unix", filepath.Join(query.Get("host"), ".s.PGSQL.5432")
	if query.Get("host") == "" {
		network, target = "tcp", u.Host
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial(network, target)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go p.answer(client, server)
		}
	}()
	query.Del("host")
	u.Host, u.RawQuery = l.Addr().String(), query.Encode()
	return u.String()
}

func (p *deafProxy) answer(client, server net.Conn) {
	defer func() { _, _ = client.Close(), server.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		if p.deaf.Load() {
			p.ends.Add(1)
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// An append whose commit is done and not confirmed fails. Its repetition is stored beside
// it: readers remove the duplicate.
func TestAnswerOfACommitIsLost(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	var proxy deafProxy
	d, err := db.Open(t.Context(), db.Config{URL: proxy.listen(t, n.db.Pool().Config().ConnString())}, "")
	must(t, err)
	defer func() { _ = d.Close() }()
	direct := n.open(t)
	l, err := pglog.Open(t.Context(), n.cfg, pglog.Options{DB: d, Cursors: cursors.New(d)})
	must(t, err)
	defer func() { _ = l.Close(context.WithoutCancel(t.Context())) }()
	must(t, appendText(t, l, 0, "before"))
	release := blockAppends(t, n.db)
	failed := make(chan error, 1)
	go func() { failed <- appendText(t, l, 0, "twice") }()
	until(t, "the append waits", func() bool { return count(t, n.db, "SELECT count(*) "+waitingAppends) == 1 })
	proxy.deaf.Store(true)
	release()
	if err := <-failed; fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	proxy.deaf.Store(false)
	must(t, appendText(t, l, 0, "twice"))
	if got := fmt.Sprint(readTexts(t, direct, 0, 0, 3)); got != "[before twice twice]" {
		t.Errorf("got %s", got)
	}
}

// A server that is killed and started again loses nothing that was acknowledged, and
// numbers have no gaps.
func TestServerIsKilledDuringAppends(t *testing.T) {
	t.Parallel()
	server := dbtest.StartKillable(t)
	d, err := db.Open(t.Context(), db.Config{URL: server.URL}, "")
	must(t, err)
	defer func() { _ = d.Close() }()
	must(t, d.Migrate(t.Context()))
	cfg := pglog.DefaultConfig()
	cfg.Partitions, cfg.AppendTimeout = 2, 2*time.Second
	l, err := pglog.Open(t.Context(), cfg, pglog.Options{DB: d, Cursors: cursors.New(d)})
	must(t, err)
	defer func() { _ = l.Close(context.WithoutCancel(t.Context())) }()
	const writers, each = 4, 150
	var stored, failures atomic.Int64
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			for i := range each {
				for deadline := time.Now().Add(patience); ; {
					err := appendText(t, l, w%2, fmt.Sprintf("%d/%d", w, i))
					if err == nil {
						break
					}
					failures.Add(1)
					if fault.KindOf(err) != fault.Unavailable || time.Now().After(deadline) {
						t.Errorf("append: %v", err)
						return
					}
					time.Sleep(20 * time.Millisecond)
				}
				stored.Add(1)
			}
		})
	}
	for _, at := range []int64{50, 300} {
		until(t, "appends go on", func() bool { return stored.Load() > at || t.Failed() })
		server.Kill(t)
		server.Start(t)
	}
	work.Wait()
	seen := map[string]int{}
	until(t, "the log can be read", func() bool { _, err := l.Partition(0, 0).Stats(t.Context()); return err == nil })
	for p := range 2 {
		s, err := l.Partition(p, 0).Stats(t.Context())
		must(t, err)
		for _, text := range readTexts(t, l, p, 0, int(s.Last)) {
			seen[text]++
		}
	}
	repeated := int64(0)
	for w := range writers {
		for i := range each {
			text := fmt.Sprintf("%d/%d", w, i)
			if seen[text] == 0 {
				t.Errorf("%s is lost", text)
			}
			repeated += int64(seen[text] - 1)
		}
	}
	if repeated > failures.Load() {
		t.Errorf("%d are repeated after %d failures", repeated, failures.Load())
	}
}

// An append that waits too long is refused, and so is what does not fit in the queue.
func TestAppendsAreBounded(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.cfg.AppendTimeout, n.cfg.MaxRecordBytes, n.cfg.MaxQueueBytes, n.cfg.MaxQueueRecords = patience, 100, 150, 10
	l := n.open(t)
	n.cfg.AppendTimeout = time.Second
	impatient := n.open(t)
	release := blockAppends(t, n.db)
	defer release()
	waiting := make(chan error, 1)
	go func() { waiting <- appendText(t, l, 0, strings.Repeat("x", 100)) }()
	until(t, "the append waits", func() bool { return count(t, n.db, "SELECT count(*) "+waitingAppends) == 1 })
	if err := appendText(t, l, 0, strings.Repeat("x", 60)); err == nil || fault.From(err).Code != "journal_saturated" {
		t.Errorf("got %v, want journal_saturated", err)
	}
	if err := appendText(t, l, 0, strings.Repeat("x", 101)); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("got %v, want a record that is too large", err)
	}
	if err := appendText(t, l, 3, ""); fault.KindOf(err) != fault.Invalid {
		t.Errorf("got %v, want no partition", err)
	}
	if err := appendText(t, impatient, 0, "late"); err == nil || fault.From(err).Code != "journal_unavailable" {
		t.Errorf("got %v, want journal_unavailable", err)
	}
	release()
	must(t, <-waiting)
	must(t, appendText(t, l, 0, "again"))
}

// Two nodes append while one trims and another reads: readers get every record, although
// tables are emptied and used again.
func TestSegmentsAreUsedAgain(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	writer, reader := n.open(t), n.open(t)
	p := reader.Partition(1, 1)
	_, err := p.Register(ctx(t), "reader", journal.Begin)
	must(t, err)
	after := uint64(0)
	for round := range 20 {
		var work sync.WaitGroup
		for _, l := range []*pglog.Log{writer, reader} {
			work.Go(func() {
				for i := range 5 {
					if err := appendText(t, l, 1, fmt.Sprint(round, " ", i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		work.Go(func() {
			if _, err := writer.Trim(ctx(t)); err != nil {
				t.Error(err)
			}
		})
		for _, text := range readTexts(t, reader, 1, after, 10) {
			if !strings.HasPrefix(text, fmt.Sprint(round, " ")) {
				t.Fatalf("%q in round %d", text, round)
			}
		}
		after += 10
		work.Wait()
		must(t, p.Commit(ctx(t), "reader", journal.Position{Seq: after, Count: after}))
	}
	must2(t)(writer.Trim(ctx(t)))
	if n := count(t, n.db, "SELECT max(generation)::INT FROM log_segments"); n < 10 {
		t.Errorf("only %d segments were used", n)
	}
	if n := count(t, n.db, "SELECT count(*) FROM log_batches"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func must2(t testing.TB) func(int64, error) {
	return func(_ int64, err error) { t.Helper(); must(t, err) }
}

// When a reader is so far behind that no table is free, the newest one grows.
func TestSlowReaderKeepsItsRecords(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	l := n.open(t)
	must(t, appendText(t, l, 0, "no reader"))
	for range 3 {
		must2(t)(l.Trim(ctx(t)))
	}
	p := l.Partition(0, 1)
	_, err := p.Register(ctx(t), "slow", journal.Begin)
	must(t, err)
	for i := range 20 {
		must(t, appendText(t, l, 0, fmt.Sprint(i)))
		must2(t)(l.Trim(ctx(t)))
	}
	if n := count(t, n.db, "SELECT count(*) FROM log_segments"); n != 8 {
		t.Errorf("%d segments", n)
	}
	if got := readTexts(t, n.open(t), 0, 0, 21); got[0] != "no reader" || got[20] != "19" {
		t.Errorf("got %v", got)
	}
	must(t, p.Commit(ctx(t), "slow", journal.Position{Seq: 21, Count: 21}))
	must2(t)(l.Trim(ctx(t)))
	must2(t)(l.Trim(ctx(t)))
	if n := count(t, n.db, "SELECT count(*) FROM log_batches"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// A commit is synced although the server has synchronous_commit off.
func TestCommitsAreSynced(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	l := n.open(t)
	exec(t, n.db, `CREATE FUNCTION refuse_async() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
		IF current_setting('synchronous_commit') <> 'on' THEN RAISE 'synchronous_commit is off'; END IF; RETURN NULL; END $$`)
	exec(t, n.db, "CREATE TRIGGER refuse_async AFTER INSERT ON log_batches FOR EACH ROW EXECUTE FUNCTION refuse_async()")
	var outside string
	must(t, n.db.Pool().QueryRow(ctx(t), "SELECT current_setting('synchronous_commit')").Scan(&outside))
	if outside != "off" {
		t.Skipf("the server of the tests has synchronous_commit = %s", outside)
	}
	must(t, appendText(t, l, 0, "synced"))
}

// Damaged and missing rows are reported with their numbers; the records behind them are
// read.
func TestDamagedRows(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	l := n.open(t)
	for i := range 6 {
		must(t, appendText(t, l, 0, fmt.Sprint(i)))
	}
	exec(t, n.db, "UPDATE log_batches SET content = set_byte(content, 6, 255) WHERE last = 2")
	exec(t, n.db, "DELETE FROM log_batches WHERE last IN (4, 5)")
	p := n.open(t).Partition(0, 0)
	for _, c := range []struct{ after, first, last uint64 }{{1, 2, 2}, {3, 4, 5}} {
		_, err := p.Read(ctx(t), c.after, 10, 1000)
		var damaged *journal.DamagedError
		if !errors.As(err, &damaged) || damaged.First != c.first || damaged.Last != c.last {
			t.Errorf("after %d: %v", c.after, err)
		}
	}
	for after, want := range map[uint64]string{0: "0", 2: "2", 5: "5"} {
		records, err := p.Read(ctx(t), after, 10, 1000)
		if err != nil || len(records) != 1 || string(records[0].Data) != want {
			t.Errorf("after %d: %v, %v", after, records, err)
		}
	}
}

// A database that cannot keep the log is refused with the reason.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.cfg.AcceptWeakTopic = count(t, n.db, "SELECT CASE WHEN current_setting('fsync') = 'on' THEN 1 ELSE 0 END") == 1
	if _, err := n.tryOpen(t); !n.cfg.AcceptWeakTopic && (err == nil || !strings.Contains(err.Error(), "fsync")) {
		t.Errorf("without fsync: %v", err)
	}
	n.cfg.AcceptWeakTopic = true
	must(t, cursors.New(n.db).Attach(t.Context(), "another", 3, nil))
	if _, err := n.tryOpen(t); err == nil || !strings.Contains(err.Error(), "belongs to the log another") {
		t.Errorf("with another log: %v", err)
	}
	n.cfg.AcceptOtherLog = true
	n.open(t)
	n.cfg.AcceptOtherLog, n.cfg.Partitions = false, 7
	if got := n.open(t).Partitions(); got != 3 {
		t.Errorf("%d partitions of a log that has 3", got)
	}
	if _, err := pglog.Open(t.Context(), n.cfg, pglog.Options{DB: dbtest.SQLite(t)}); err == nil || !strings.Contains(err.Error(), "database.url") {
		t.Errorf("on SQLite: %v", err)
	}
}

// A database that has lost its newest commits, as after a failover, gives their numbers
// again. Readers get the new records.
func TestLostCommits(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	l := n.open(t)
	for i := range 3 {
		must(t, appendText(t, l, 0, fmt.Sprint(i)))
	}
	readTexts(t, l, 0, 0, 3)
	exec(t, n.db, "DELETE FROM log_batches WHERE last = 3")
	p := l.Partition(0, 1)
	at, err := p.Register(ctx(t), "reader", journal.End)
	must(t, err)
	if at.Seq != 2 {
		t.Fatalf("the end is %d", at.Seq)
	}
	must(t, appendText(t, l, 0, "new"))
	if got := fmt.Sprint(readTexts(t, l, 0, 2, 1)); got != "[new]" {
		t.Errorf("got %s", got)
	}
}
