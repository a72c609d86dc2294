//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap/zaptest"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/eventlog/eventlogtest"
	kafkalog "github.com/guidonhq/guidon/core/eventlog/kafka"
	"github.com/guidonhq/guidon/core/journal"
)

// logConfig is the config of a log in a topic of its own.
func logConfig(t *testing.T, brokers ...string) kafkalog.Config {
	cfg := kafkalog.DefaultConfig()
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name())
	cfg.URL = "kafka://" + strings.Join(brokers, ",") + "/" + name
	cfg.Partitions, cfg.TrimInterval, cfg.MaxAge, cfg.MaxBytes, cfg.StartTimeout = 3, time.Hour, 0, 1, 2*time.Minute
	return cfg
}

// TestLogOnKafka runs the suite of the log on Apache Kafka.
func TestLogOnKafka(t *testing.T) {
	t.Parallel()
	_, address := startKafka(t)
	t.Run("one broker is refused", func(t *testing.T) {
		_, err := kafkalog.Open(t.Context(), logConfig(t, address), kafkalog.Options{Cursors: cursors.New(dbtest.SQLite(t))})
		if err == nil || !strings.Contains(err.Error(), "three are needed") {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("a second database is refused", func(t *testing.T) {
		cfg := logConfig(t, address)
		cfg.AcceptWeakTopic = true
		open := func(d *db.DB) error {
			l, err := kafkalog.Open(t.Context(), cfg, kafkalog.Options{Cursors: cursors.New(d), Log: zaptest.NewLogger(t)})
			if err == nil {
				err = l.Close(t.Context())
			}
			return err
		}
		d := dbtest.SQLite(t)
		for _, err := range []error{open(d), open(d)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := open(dbtest.SQLite(t)); err == nil || !strings.Contains(err.Error(), "belongs to another database") {
			t.Errorf("another database: %v", err)
		}
	})
	for _, tail := range []int{32 << 20, 1} {
		t.Run(fmt.Sprint("tail of ", tail), func(t *testing.T) {
			eventlogtest.Run(t, eventlogtest.Log{
				New: func(t *testing.T) func(t *testing.T) eventlog.Log {
					cfg, d := logConfig(t, address), dbtest.SQLite(t)
					cfg.AcceptWeakTopic, cfg.TailBytes = true, tail
					return func(t *testing.T) eventlog.Log {
						l, err := kafkalog.Open(t.Context(), cfg, kafkalog.Options{Cursors: cursors.New(d), Log: zaptest.NewLogger(t)})
						if err != nil {
							t.Fatal(err)
						}
						t.Cleanup(func() { _ = l.Close(context.Background()) })
						return l
					}
				},
				Trim: func(t *testing.T, log eventlog.Log) {
					if _, err := log.(*kafkalog.Log).Trim(t.Context()); err != nil {
						t.Fatal(err)
					}
				},
				Tokens: true,
			})
		})
	}
}

// TestLogSurvivesBrokers kills each of three brokers in turn while events are appended and
// read. Every acknowledged record is read, in its order.
func TestLogSurvivesBrokers(t *testing.T) {
	longTest(t)
	t.Parallel()
	brokers, addresses := startKafkaCluster(t, 3)
	l, err := kafkalog.Open(t.Context(), logConfig(t, addresses...), kafkalog.Options{Cursors: cursors.New(dbtest.SQLite(t)), Log: zaptest.NewLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close(context.Background()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	stop := make(chan struct{})
	var writers, readers sync.WaitGroup
	acknowledged := make([]int, l.Partitions()) // the last of each partition
	for p := range l.Partitions() {
		writers.Go(func() {
			for i := 1; ; i++ {
				for l.Append(ctx, []eventlog.Part{{Partition: p, Data: fmt.Append(nil, i)}}) != nil && ctx.Err() == nil {
					continue // a client repeats it
				}
				acknowledged[p] = i
				select {
				case <-stop:
					return
				case <-ctx.Done():
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		})
	}
	for _, b := range brokers {
		b.kill(t)
		appended := func() (n int) {
			s, err := l.Partition(0, 1).Stats(ctx)
			if err != nil {
				return 0
			}
			return int(s.Last)
		}
		before := appended()
		eventually(t, 2*time.Minute, "appends go on without a broker", func() error {
			if n := appended(); n < before+10 {
				return fmt.Errorf("%d records", n)
			}
			return nil
		})
		b.start(t)
		eventually(t, 2*time.Minute, "the broker is in sync", func() error { return inSync(ctx, addresses, 3) })
	}
	close(stop)
	writers.Wait()
	for p := range l.Partitions() {
		readers.Go(func() { checkOrdered(t, ctx, l.Partition(p, 1), acknowledged[p]) })
	}
	readers.Wait()
}

// checkOrdered reads the records 1 to n of a partition: each is there, and none comes
// before its predecessor.
func checkOrdered(t *testing.T, ctx context.Context, p eventlog.Partition, n int) {
	after, seen := uint64(0), 0
	for seen < n {
		var records []journal.Record
		err := p.Wait(ctx, after)
		if err == nil {
			records, err = p.Read(ctx, after, 1000, 1<<20)
		}
		if err != nil {
			t.Errorf("after %d: %v", seen, err)
			return
		}
		for _, r := range records {
			var i int
			if _, err := fmt.Sscan(string(r.Data), &i); err != nil || i > seen+1 {
				t.Errorf("record %q follows %d", r.Data, seen)
				return
			}
			seen, after = max(seen, i), r.Seq
		}
	}
}

// startKafkaCluster starts servers of which each is broker and controller.
func startKafkaCluster(t *testing.T, n int) (brokers []kafka, addresses []string) {
	t.Helper()
	lib := filepath.Join(install(t, "kafka"), "lib")
	var voters []string
	controllers := make([]string, n)
	for i := range n {
		addresses, controllers[i] = append(addresses, freeAddress(t)), freeAddress(t)
		voters = append(voters, fmt.Sprintf("%d@%s", i+1, controllers[i]))
	}
	for i := range n {
		dir := t.TempDir()
		k := kafka{lib: lib, brief: true}
		config := writeFile(t, dir, "server.properties", `process.roles=broker,controller
node.id=%[1]d
controller.quorum.voters=%[2]s
listeners=PLAINTEXT://%[3]s,CONTROLLER://%[4]s
advertised.listeners=PLAINTEXT://%[3]s
controller.listener.names=CONTROLLER
log.dirs=%[5]s
`, i+1, strings.Join(voters, ","), addresses[i], controllers[i], filepath.Join(dir, "data"))
		output(t, dir, k.java("kafka.tools.StorageTool", "format", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg", "--config", config)...)
		k.software = &software{name: fmt.Sprint("kafka", i+1), dir: dir, ready: func() error { return nil }, command: k.java("kafka.Kafka", config)}
		launch(t, k.software)
		brokers = append(brokers, k)
	}
	for i, b := range brokers {
		b.ready = listening(addresses[i])
	}
	eventually(t, 4*time.Minute, "the brokers are ready", func() error { return inSync(t.Context(), addresses, n) })
	return brokers, addresses
}

// inSync returns nil when n brokers answer, and each partition has n replicas in sync.
func inSync(ctx context.Context, addresses []string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := kgo.NewClient(kgo.SeedBrokers(addresses...))
	if err != nil {
		return err
	}
	defer c.Close()
	m, err := kadm.NewClient(c).Metadata(ctx)
	if err != nil {
		return err
	}
	if len(m.Brokers) < n {
		return fmt.Errorf("%d brokers", len(m.Brokers))
	}
	for _, topic := range m.Topics {
		for _, p := range topic.Partitions {
			if len(p.ISR) < n {
				return fmt.Errorf("partition %d has %d replicas in sync", p.Partition, len(p.ISR))
			}
		}
	}
	return nil
}
