package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/eventlog/kafka"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func parts(partition int, texts ...string) (out []eventlog.Part) {
	for _, text := range texts {
		out = append(out, eventlog.Part{Partition: partition, Data: []byte(text)})
	}
	return out
}

func appendTo(t testing.TB, l *kafka.Log, partition int, texts ...string) {
	t.Helper()
	for _, text := range texts {
		must(t, l.Append(ctx(t), parts(partition, text)))
	}
}

// readN reads n records and returns their texts and the last position.
func readN(t testing.TB, p eventlog.Partition, after uint64, n int) (texts []string, last uint64) {
	t.Helper()
	c := ctx(t)
	for len(texts) < n {
		must(t, p.Wait(c, after))
		records, err := p.Read(c, after, n-len(texts), 1<<20)
		must(t, err)
		for _, r := range records {
			texts, after = append(texts, string(r.Data)), r.Seq
		}
	}
	return texts, after
}

func wantTexts(t testing.TB, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func wantFault(t testing.TB, err error, kind fault.Kind, code string) {
	t.Helper()
	f := fault.From(err)
	if f == nil || f.Kind != kind || f.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	if kind == fault.Unavailable && f.RetryAfter <= 0 {
		t.Fatalf("%v has no retry delay", err)
	}
}

// TestAppendSurvivesErrors appends while brokers answer with errors that pass, and while
// leaders move. Nothing that was acknowledged is missing.
func TestAppendSurvivesErrors(t *testing.T) {
	t.Parallel()
	for _, e := range []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut,
		kerr.LeaderNotAvailable,
	} {
		t.Run(e.Message, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			l := n.open(t)
			appendTo(t, l, 0, "before")
			handle := n.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "guidon", Partitions: []int32{0}, Err: e, Count: 2})
			appendTo(t, l, 0, "during", "after")
			if handle.Hits() == 0 {
				t.Error("the fault did not happen")
			}
			texts, _ := readN(t, l.Partition(0, 1), 0, 3)
			seen := map[string]bool{}
			for _, text := range texts { // an error after the write may store it twice
				seen[text] = true
			}
			if e != kerr.NotEnoughReplicasAfterAppend && e != kerr.RequestTimedOut {
				wantTexts(t, texts, "before", "during", "after")
			} else if !seen["before"] || !seen["during"] {
				t.Errorf("got %q", texts)
			}
		})
	}
}

// TestAppendFails checks the answers to appends that the brokers refuse, and that the log
// reports itself as broken until one succeeds.
func TestAppendFails(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.cfg.AppendTimeout = time.Second
	l := n.open(t)
	p := l.Partition(0, 1)
	handle := n.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "guidon", Partitions: []int32{0}, Err: kerr.NotEnoughReplicas, Count: -1})
	err := l.Append(ctx(t), append(parts(1, "stored"), parts(0, "not stored")...))
	wantFault(t, err, fault.Unavailable, "journal_unavailable")
	if s, err := p.Stats(ctx(t)); err != nil || s.Broken == nil {
		t.Errorf("stats while appends fail: %+v, %v", s, err)
	}
	if n.seen.FilterMessage("log append failed").Len() != 1 {
		t.Error("the failure is not logged once")
	}
	handle.Remove()
	eventually(t, "an append succeeds", func() bool { return l.Append(ctx(t), parts(0, "later")) == nil })
	if s, err := p.Stats(ctx(t)); err != nil || s.Broken != nil {
		t.Errorf("stats after an append: %+v, %v", s, err)
	}
	n.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "guidon", Err: kerr.MessageTooLarge})
	wantFault(t, l.Append(ctx(t), parts(0, "refused")), fault.TooLarge, "record_too_large")
	wantFault(t, l.Append(ctx(t), parts(0, strings.Repeat("x", n.cfg.MaxRecordBytes+1))), fault.TooLarge, "record_too_large")
	wantFault(t, l.Append(ctx(t), parts(3, "nowhere")), fault.Invalid, "no_partition")
	_, err = l.Partition(-1, 1).Read(ctx(t), 0, 1, 1)
	wantFault(t, err, fault.Invalid, "no_partition")
}

// TestAppendIsBounded checks that appends are refused while too many wait.
func TestAppendIsBounded(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.cfg.MaxQueueRecords = 2
	l := n.open(t)
	appendTo(t, l, 0, "first") // connections are open
	release := make(chan struct{})
	entered := make(chan struct{}, 100)
	n.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		n.cluster.KeepControl()
		entered <- struct{}{}
		n.cluster.SleepControl(func() { <-release })
		return nil, nil, false
	})
	var waiting sync.WaitGroup
	for i := range 2 {
		waiting.Go(func() {
			if err := l.Append(ctx(t), parts(0, fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	<-entered
	deadline := time.Now().Add(patience)
	for {
		c, cancel := context.WithCancel(ctx(t))
		err := l.Append(c, parts(0, "a", "b"))
		cancel()
		if fault.CodeOf(err) == "journal_saturated" {
			wantFault(t, err, fault.Unavailable, "journal_saturated")
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not refused: %v", err)
		}
	}
	close(release)
	waiting.Wait()
	appendTo(t, l, 0, "last")
}

// TestReadSurvivesErrors reads while fetches fail and leaders move: nothing is skipped.
func TestReadSurvivesErrors(t *testing.T) {
	t.Parallel()
	for _, tail := range []int{1, 1 << 20} {
		t.Run(fmt.Sprint("tail of ", tail), func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.cfg.TailBytes = tail
			l := n.open(t)
			p := l.Partition(0, 1)
			var want, got []string
			after := uint64(0)
			for i, e := range []*kerr.Error{
				nil, kerr.NotLeaderForPartition, kerr.UnknownTopicOrPartition, kerr.FencedLeaderEpoch, kerr.KafkaStorageError,
				kerr.ReplicaNotAvailable, kerr.UnknownServerError, kerr.OffsetOutOfRange,
			} {
				if e != nil {
					n.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "guidon", Err: e, Count: 2})
				}
				must(t, n.cluster.MoveTopicPartition("guidon", 0, int32(i%3)))
				appendTo(t, l, 0, fmt.Sprint(i))
				want = append(want, fmt.Sprint(i))
				var some []string
				some, after = readN(t, p, after, 1)
				got = append(got, some...)
			}
			wantTexts(t, got, want...)
		})
	}
}

// TestReadFails checks the error of a read when no broker answers it.
func TestReadFails(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	l := n.open(t)
	appendTo(t, l, 0, "one")
	p := l.Partition(0, 1)
	readN(t, p, 0, 1)
	n.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "guidon", Err: kerr.UnknownServerError, Count: -1})
	_, err := p.Register(ctx(t), "sink", journal.Begin)
	wantFault(t, err, fault.Unavailable, "journal_unreadable")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Stats(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context gives %v", err)
	}
}

// TestOpenWithoutALeader opens a log while the leader of a partition has gone away, and no
// other has taken its place.
func TestOpenWithoutALeader(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	l := n.open(t)
	appendTo(t, l, 0, "one")
	away := n.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "guidon", Partitions: []int32{0}, Err: kerr.LeaderNotAvailable, Count: -1})
	type result struct {
		log *kafka.Log
		err error
	}
	opened := make(chan result, 1)
	go func() {
		again, err := kafka.Open(ctx(t), n.cfg, kafka.Options{Cursors: cursors.New(n.db), Log: n.log})
		opened <- result{again, err}
	}()
	waited := away.Wait(ctx(t), 2) // it asked again
	away.Remove()
	again := <-opened
	must(t, errors.Join(waited, again.err))
	t.Cleanup(func() { _ = again.log.Close(context.Background()) })
	readN(t, again.log.Partition(0, 1), 0, 1)
}

// TestOpenWithoutTheRight opens a log whose offsets the user may not read: that ends the
// start at once, and not at the StartTimeout.
func TestOpenWithoutTheRight(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	must(t, n.open(t).Close(ctx(t)))
	n.cfg.StartTimeout = time.Hour
	n.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "guidon", Err: kerr.TopicAuthorizationFailed, Count: -1})
	_, err := kafka.Open(ctx(t), n.cfg, kafka.Options{Cursors: cursors.New(n.db), Log: n.log})
	if !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("got %v", err)
	}
}

// TestDeletedUnread checks that records which the topic deleted before a reader read them
// are reported with their range, once, and that reading goes on behind them.
func TestDeletedUnread(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	reg := prometheus.NewRegistry()
	l, err := kafka.Open(t.Context(), n.cfg, kafka.Options{Cursors: cursors.New(n.db), Log: n.log, Metrics: reg})
	must(t, err)
	defer func() { _ = l.Close(ctx(t)) }()
	p := l.Partition(1, 1)
	_, err = p.Register(ctx(t), "sink", journal.Begin)
	must(t, err)
	appendTo(t, l, 1, "0", "1", "2", "3", "4")
	must(t, p.Commit(ctx(t), "sink", journal.Position{Seq: 1, Count: 1}))
	must(t, n.cluster.DeleteRecords("guidon", 1, 3))
	must(t, l.Close(ctx(t)))
	if l, err = kafka.Open(t.Context(), n.cfg, kafka.Options{Cursors: cursors.New(n.db), Log: n.log, Metrics: reg}); err != nil {
		t.Fatal(err)
	}
	p = l.Partition(1, 2)
	at, err := p.Register(ctx(t), "sink", journal.Begin)
	must(t, err)
	for range 2 {
		_, err = p.Read(ctx(t), at.Seq, 10, 1000)
		damaged, ok := errors.AsType[*journal.DamagedError](err)
		if !ok || damaged.First != 2 || damaged.Last != 3 {
			t.Fatalf("got %v, want the records 2 to 3", err)
		}
	}
	if got := n.seen.FilterMessage("log records deleted before they were read").Len(); got != 1 {
		t.Errorf("logged %d times", got)
	}
	texts, _ := readN(t, p, 3, 2)
	wantTexts(t, texts, "3", "4")
	must(t, p.Commit(ctx(t), "sink", journal.Position{Seq: 3, Count: 3}))
	texts, _ = readN(t, p, 0, 2) // no reader is missing anything now
	wantTexts(t, texts, "3", "4")
	if got := counterOf(t, reg, "guidon_log_lost_records_total"); got != 2 {
		t.Errorf("%v records are counted as lost", got)
	}
}

// counterOf returns the sum of a counter over its labels.
func counterOf(t *testing.T, reg prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// TestRetentionGuard checks that appends to a partition are refused while the retention
// of the topic is near its unread records, also on a node that does not read it.
func TestRetentionGuard(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.cfg.Partitions = 2
	must(t, n.cluster.CreateTopic("guidon", 2, map[string]string{
		"retention.ms": "86400000", "max.message.bytes": "40000000", "min.insync.replicas": "2", "message.timestamp.type": "CreateTime",
	}))
	l := n.open(t)
	p := l.Partition(1, 1)
	_, err := p.Register(ctx(t), "sink", journal.Begin)
	must(t, err)
	old := time.Now().Add(-23 * time.Hour)
	produceAt(t, n, 1, old, "old")
	trim := func() {
		t.Helper()
		_, err := l.Trim(ctx(t))
		must(t, err)
	}
	trim()
	wantFault(t, l.Append(ctx(t), parts(1, "refused")), fault.Unavailable, "journal_full")
	appendTo(t, l, 0, "the other partition")
	must(t, p.Commit(ctx(t), "sink", journal.Position{Seq: 1, Count: 1}))
	trim()
	appendTo(t, l, 1, "accepted")
}

// TestIdleTailCloses checks that a partition which is not read is fetched no longer, and
// that reading it again misses nothing.
func TestIdleTailCloses(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	l := n.open(t)
	p := l.Partition(0, 1)
	appendTo(t, l, 0, "0")
	_, after := readN(t, p, 0, 1)
	for i := range 5 {
		l.CloseIdleTails(0)
		appendTo(t, l, 0, fmt.Sprint("a", i), fmt.Sprint("b", i))
		var texts []string
		texts, after = readN(t, p, after, 2)
		wantTexts(t, texts, fmt.Sprint("a", i), fmt.Sprint("b", i))
	}
}

// TestMemoryIsBounded checks that a tail holds no more than its share, and that a reader
// behind it gets everything.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.cfg.TailBytes = 64 << 10
	l := n.open(t)
	p := l.Partition(0, 1)
	_, err := p.Read(ctx(t), 0, 1, 1) // opens the tail
	must(t, err)
	const records = 100
	for i := range records {
		appendTo(t, l, 0, fmt.Sprintf("%09d", i)+strings.Repeat("x", 8<<10))
	}
	texts, _ := readN(t, p, 0, records)
	for i, text := range texts {
		if text[:9] != fmt.Sprintf("%09d", i) {
			t.Fatalf("record %d is %s", i, text[:9])
		}
	}
	if got := l.TailBytes(0); got > n.cfg.TailBytes {
		t.Errorf("the tail has %d bytes, above %d", got, n.cfg.TailBytes)
	}
	if got := l.AheadBytes(0); got > 12<<20 {
		t.Errorf("fetched ahead are %d bytes", got)
	}
}

// TestDatabaseOfTwoLogs checks what a start refuses: another topic, and more partitions.
func TestDatabaseOfTwoLogs(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	must(t, n.open(t).Close(ctx(t)))
	first := n.cfg.URL
	n.cfg.URL += "2"
	if _, err := n.tryOpen(t); err == nil || !strings.Contains(err.Error(), "belongs to the log kafka/") {
		t.Errorf("another topic: %v", err)
	}
	n.cfg.AcceptOtherLog = true
	must(t, n.open(t).Close(ctx(t)))
	n.cfg.URL, n.cfg.AcceptOtherLog = first, false
	if _, err := n.tryOpen(t); err == nil {
		t.Error("the first topic is accepted after the second")
	}
}

// TestTopicOfTwoDatabases checks that a second database is refused a topic, and that the
// first one stops when the second takes the topic over: it reads, appends and deletes
// nothing until it has the topic again.
func TestTopicOfTwoDatabases(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.cfg.TrimInterval = 20 * time.Millisecond
	first := n.open(t)
	p := first.Partition(0, 1)
	_, err := p.Register(ctx(t), "reader", journal.Begin)
	must(t, err)
	appendTo(t, first, 0, "one", "two")
	texts, last := readN(t, p, 0, 1)
	wantTexts(t, texts, "one")
	must(t, n.open(t).Close(ctx(t))) // another node of the same database
	other := *n
	other.db = dbtest.SQLite(t)
	if _, err := other.tryOpen(t); err == nil || !strings.Contains(err.Error(), "the topic guidon belongs to another database") {
		t.Fatalf("another database: %v", err)
	}
	other.cfg.AcceptOtherLog = true
	second := other.open(t)
	eventually(t, "the first one has stopped", func() bool { return fault.CodeOf(first.Broken()) == "log_taken" })
	wantFault(t, first.Append(ctx(t), parts(0, "refused")), fault.Unavailable, "log_taken")
	_, err = p.Read(ctx(t), last, 10, 1<<20)
	wantFault(t, err, fault.Unavailable, "log_taken")
	must(t, second.Close(ctx(t)))
	n.cfg.AcceptOtherLog = true
	must(t, n.open(t).Close(ctx(t)))
	eventually(t, "the first one goes on", func() bool { return first.Broken() == nil })
	appendTo(t, first, 0, "three")
	texts, _ = readN(t, p, last, 2)
	wantTexts(t, texts, "two", "three")
}

// TestTopicOfCopies checks that a copy of a database is refused the topic of the original,
// unless it takes the topic over.
func TestTopicOfCopies(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.cfg.TrimInterval, n.db = 20*time.Millisecond, dbtest.Postgres(t)
	first := n.open(t)
	must(t, n.open(t).Close(ctx(t))) // another node
	id, err := cursors.New(n.db).Identity(ctx(t))
	must(t, err)
	moved := *n
	moved.db = dbtest.Postgres(t)
	_, err = moved.db.Pool().Exec(ctx(t), "INSERT INTO log_cursors (log_id, log_partition, reader, token, seq, event_index, event_count) VALUES ('database', 0, 'identity', 0, $1, 0, 0)", id)
	must(t, err)
	if _, err := moved.tryOpen(t); err == nil || !strings.Contains(err.Error(), "the topic guidon belongs to another copy of this database") || !strings.Contains(err.Error(), "journal.accept_other_log") {
		t.Fatalf("a copy: %v", err)
	}
	appendTo(t, first, 0, "one")
	moved.cfg.AcceptOtherLog = true
	second := moved.open(t)
	eventually(t, "the first one has stopped", func() bool { return fault.CodeOf(first.Broken()) == "log_taken" })
	appendTo(t, second, 0, "two")
}

// TestTwoDatabasesAtOnce starts two databases on a new topic at the same time: one gets it.
func TestTwoDatabasesAtOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.cfg.TrimInterval = 20 * time.Millisecond
	other := *n
	other.db = dbtest.SQLite(t)
	logs := make([]*kafka.Log, 2)
	var starting sync.WaitGroup
	for i, one := range []*node{n, &other} {
		starting.Go(func() { logs[i], _ = one.tryOpen(t) })
	}
	starting.Wait()
	works := func(l *kafka.Log) bool { return l != nil && l.Broken() == nil }
	eventually(t, "one database has the topic", func() bool { return works(logs[0]) != works(logs[1]) })
}

// TestTopicWithoutClaim starts on brokers that refuse the group of the claim.
func TestTopicWithoutClaim(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.GroupAuthorizationFailed, Count: -1})
	l := n.open(t)
	appendTo(t, l, 0, "one")
	if n.seen.FilterMessageSnippet("log topic not claimed").Len() != 1 {
		t.Error("no warning")
	}
}

// TestStatsOfUnreadPartitions checks that the lag in bytes is known for a partition that
// this node has not read.
func TestStatsOfUnreadPartitions(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	first := n.open(t)
	for p := range 2 {
		appendTo(t, first, p, strings.Repeat("x", 1000), strings.Repeat("x", 1000))
	}
	second := n.open(t)
	must(t, second.Register(ctx(t), "reader", journal.Begin))
	for p := range 2 {
		s, err := second.Partition(p, 0).Stats(ctx(t))
		must(t, err)
		if len(s.Readers) != 1 || s.Readers[0].Lag != 2 || s.Readers[0].Bytes != 2000 || s.Bytes != 2000 {
			t.Errorf("partition %d: %+v", p, s)
		}
	}
}

// TestTrimByAge checks that records which all readers have done are kept for a time, and
// that those of a partition without a reader are kept.
func TestTrimByAge(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.cfg.Partitions = 2
	must(t, n.cluster.CreateTopic("guidon", 2, map[string]string{
		"max.message.bytes": "40000000", "min.insync.replicas": "2", "message.timestamp.type": "CreateTime",
	}))
	n.cfg.MaxAge, n.cfg.MaxBytes = time.Hour, 0
	reg := prometheus.NewRegistry()
	l, err := kafka.Open(t.Context(), n.cfg, kafka.Options{Cursors: cursors.New(n.db), Log: n.log, Metrics: reg})
	must(t, err)
	defer func() { _ = l.Close(ctx(t)) }()
	for p := range int32(2) {
		produceAt(t, n, p, time.Now().Add(-3*time.Hour), "0")
		produceAt(t, n, p, time.Now().Add(-2*time.Hour), "1")
		produceAt(t, n, p, time.Now(), "2")
	}
	p := l.Partition(1, 1)
	readN(t, l.Partition(0, 1), 0, 3)
	readN(t, p, 0, 3)
	_, err = p.Register(ctx(t), "sink", journal.Begin)
	must(t, err)
	for _, c := range []struct {
		done    uint64
		removed int64
	}{{0, 0}, {1, 1}, {3, 1}, {3, 0}} {
		must(t, p.Commit(ctx(t), "sink", journal.Position{Seq: c.done, Count: c.done}))
		removed, err := l.Trim(ctx(t))
		must(t, err)
		if removed != c.removed {
			t.Errorf("with %d done, %d are removed, want %d", c.done, removed, c.removed)
		}
	}
	if s, err := p.Stats(ctx(t)); err != nil || s.First != 3 || s.Records != 1 {
		t.Errorf("after trimming: %+v, %v", s, err)
	}
	texts, _ := readN(t, l.Partition(0, 1), 0, 3)
	wantTexts(t, texts, "0", "1", "2")
	if got := counterOf(t, reg, "guidon_log_trimmed_records_total"); got != 2 {
		t.Errorf("%v records are counted as trimmed", got)
	}
}

// TestNoticesSilence checks that a log notices that no broker answers, although its readers
// have read everything.
func TestNoticesSilence(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.cfg.AppendTimeout = 2 * time.Second
	l := n.open(t)
	p := l.Partition(0, 1)
	appendTo(t, l, 0, "one")
	readN(t, p, 0, 1)
	const silence = 5 * time.Second
	until := func(what string, done func() bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("never %s: %v", what, l.Unreachable())
			}
		}
	}
	until("reached", func() bool { return l.Unreachable() < silence })
	n.cluster.Close()
	until("unreachable", func() bool { return l.Unreachable() > silence })
	s, err := p.Stats(ctx(t))
	wantFault(t, err, fault.Unavailable, "journal_unreadable")
	if s.Broken == nil {
		t.Error("the log is not reported as broken")
	}
	wantFault(t, l.Append(ctx(t), parts(0, "lost")), fault.Unavailable, "journal_unavailable")
}
