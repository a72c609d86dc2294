package plugins_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	parquetgo "github.com/parquet-go/parquet-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/plugins"
	"github.com/guidonhq/guidon/plugins/sink/nats/natstest"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/plugintest"
)

// TestMain lets the test binary be a bundled plugin, as guidon is.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		if p, ok := plugins.Find(os.Args[1]); ok {
			sdk.Serve(p)
			return
		}
	}
	os.Exit(m.Run())
}

// conformance judges a bundled plugin by the kit that is published for others.
type conformance func(t *testing.T, name string, target plugintest.Target)

// conformsToAll is the whole kit.
func conformsToAll(t *testing.T, name string, target plugintest.Target) {
	t.Helper()
	target.Command, target.Events = []string{os.Args[0], name}, 2000
	plugintest.Run(t, target)
}

// conforms is the kit with a tenth of the events, and without the case that takes a third
// of its time.
func conforms(t *testing.T, name string, target plugintest.Target) {
	t.Helper()
	target.Command, target.Events = []string{os.Args[0], name}, 200
	target.Skip = map[string]string{"keeps its memory while instances come and go": "TestBundledPluginsConformToAll checks it"}
	plugintest.Run(t, target)
}

func TestBundledSinksConform(t *testing.T) {
	t.Parallel()
	judgeSinks(t, conforms)
}

func TestBundledNotifiersConform(t *testing.T) {
	t.Parallel()
	judgeNotifiers(t, conforms)
}

func TestBundledMatchersConform(t *testing.T) {
	t.Parallel()
	judgeMatchers(t, conforms)
}

func TestBundledPluginsConformToAll(t *testing.T) {
	if os.Getenv("GUIDON_TEST_LONG") == "" {
		t.Skip("long test: run it with GUIDON_TEST_LONG=1 or make test-long")
	}
	t.Parallel()
	t.Run("sinks", func(t *testing.T) { judgeSinks(t, conformsToAll) })
	t.Run("notifiers", func(t *testing.T) { judgeNotifiers(t, conformsToAll) })
	t.Run("matchers", func(t *testing.T) { judgeMatchers(t, conformsToAll) })
}

// tooLarge is an event that no message can hold.
var tooLarge = json.RawMessage(`{"text":"` + strings.Repeat("x", 3<<20) + `"}`)

var private = []any{"127.0.0.0/8"}

// judgeSinks judges the bundled sinks. The stdout sink is missing: it prints where its
// parent does, here among the answers of the tests.
func judgeSinks(t *testing.T, judge conformance) {
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "events.ndjson")
		judge(t, "file", plugintest.Target{
			Config: map[string]any{"path": path}, Other: map[string]any{"path": path + ".other"},
			Received: func() ([]sdk.Event, error) {
				text, err := os.ReadFile(path)
				if errors.Is(err, fs.ErrNotExist) {
					return nil, nil
				}
				return lines(text), err
			},
		})
	})
	t.Run("webhook", func(t *testing.T) {
		t.Parallel()
		in := newInbox(t)
		judge(t, "webhook", plugintest.Target{
			Kind: plugintest.Sink, Config: map[string]any{"url": in.URL, "format": "ndjson", "allow_networks": private},
			Received: func() ([]sdk.Event, error) { return lines(in.all()), nil },
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := dbtest.EmptyPostgresURL(t)
		judge(t, "postgres", plugintest.Target{
			Config:   map[string]any{"url": url, "table": "kept"},
			Other:    map[string]any{"url": url, "table": "other"},
			Received: func() ([]sdk.Event, error) { return inPostgres(t.Context(), url) },
		})
	})
	t.Run("nats", func(t *testing.T) {
		t.Parallel()
		s := natstest.Start(t, natstest.Options{MaxPayload: 2 << 20})
		judge(t, "nats", plugintest.Target{
			Config: map[string]any{"servers": []any{s.URL()}, "stream": "kept", "subject": "kept.{project}", "create": true}, Refused: tooLarge,
			Received: func() (events []sdk.Event, err error) {
				for _, m := range s.Streams.Messages("kept") {
					events = append(events, lines(m.Data)...)
				}
				return events, nil
			},
		})
	})
	t.Run("parquet", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		judge(t, "parquet", plugintest.Target{
			Config: map[string]any{"path": dir}, Other: map[string]any{"path": t.TempDir()},
			Received: func() ([]sdk.Event, error) { return inLake(dir) },
		})
	})
	t.Run("kafka", func(t *testing.T) {
		t.Parallel()
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "kept"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		var brokers []any
		for _, address := range c.ListenAddrs() {
			brokers = append(brokers, address)
		}
		judge(t, "kafka", plugintest.Target{
			Config: map[string]any{"brokers": brokers, "topic": "kept", "max_bytes": 2 << 20}, Refused: tooLarge,
			Received: func() ([]sdk.Event, error) { return inTopic(t.Context(), c.ListenAddrs(), "kept") },
		})
	})
}

func judgeNotifiers(t *testing.T, judge conformance) {
	for name, c := range map[string]struct {
		answer  string
		config  map[string]any
		control []string
	}{
		"webhook": {"", map[string]any{}, nil},                                    // nothing is a command in JSON
		"slack":   {"ok", map[string]any{"allow_hosts": []any{"127.0.0.1"}}, nil}, // rich text has text apart
		"discord": {`{"id":"1"}`, map[string]any{"allow_hosts": []any{"127.0.0.1"}}, []string{"**bold**", "__x__"}},
		"msteams": {"1", map[string]any{"allow_hosts": []any{"127.0.0.1"}}, nil}, // mentions need a list, which is empty
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := newInbox(t)
			in.answer = c.answer
			c.config["url"], c.config["allow_networks"] = in.URL, private
			judge(t, name, plugintest.Target{
				Kind: plugintest.Notifier, Config: c.config, Control: c.control,
				Messages: func() (int, error) { return int(in.posts.Load()), nil },
			})
		})
	}
	t.Run("email", func(t *testing.T) {
		t.Parallel()
		box := &mailbox{}
		s := smtp.NewServer(box)
		s.Domain, s.AllowInsecureAuth = "localhost", true
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { _ = s.Close() })
		judge(t, "email", plugintest.Target{
			Config: map[string]any{
				"host": "127.0.0.1", "port": l.Addr().(*net.TCPAddr).Port, "tls": "none", "from": "Guidon <guidon@example.com>", "to": []any{"ops@example.com"},
			},
			Messages: func() (int, error) { return int(box.mails.Load()), nil },
		})
	})
}

func judgeMatchers(t *testing.T, judge conformance) {
	for _, name := range plugins.Names() {
		if plugins.Operators(name) != nil {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				judge(t, name, plugintest.Target{})
			})
		}
	}
}

// lines reads one event a line; one that a kill has cut is not there.
func lines(text []byte) (events []sdk.Event) {
	for line := range bytes.Lines(text) {
		var ev sdk.Event
		if json.Unmarshal(line, &ev) == nil {
			events = append(events, ev)
		}
	}
	return events
}

// inbox is an HTTP endpoint that keeps the posted bodies.
type inbox struct {
	*httptest.Server
	answer string
	posts  atomic.Int64

	mu   sync.Mutex
	body bytes.Buffer
	seen map[string]bool // by idempotency key
}

func newInbox(t *testing.T) *inbox {
	t.Helper()
	in := &inbox{seen: map[string]bool{}}
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // it was killed while it sent
		}
		in.mu.Lock()
		if key := r.Header.Get("Idempotency-Key"); key == "" || !in.seen[key] {
			in.seen[key] = true
			in.posts.Add(1)
			in.body.Write(body)
		}
		in.mu.Unlock()
		_, _ = io.WriteString(w, in.answer)
	}))
	t.Cleanup(in.Close)
	return in
}

func (in *inbox) all() []byte {
	in.mu.Lock()
	defer in.mu.Unlock()
	return bytes.Clone(in.body.Bytes())
}

func inPostgres(ctx context.Context, url string) ([]sdk.Event, error) {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close(ctx) }()
	rows, err := c.Query(ctx, "SELECT uuid::text, distinct_id, properties::text FROM kept")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (ev sdk.Event, err error) {
		var properties string
		err = row.Scan(&ev.UUID, &ev.DistinctID, &properties)
		ev.Properties = json.RawMessage(properties)
		return ev, err
	})
}

// inLake reads the Parquet files below a directory.
func inLake(dir string) (events []sdk.Event, err error) {
	type row struct {
		UUID       [16]byte `parquet:"uuid,uuid"`
		DistinctID string   `parquet:"distinct_id"`
		Properties string   `parquet:"properties"`
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".parquet" {
			return err
		}
		rows, err := parquetgo.ReadFile[row](path)
		for _, r := range rows {
			events = append(events, sdk.Event{UUID: uuid.UUID(r.UUID).String(), DistinctID: r.DistinctID, Properties: json.RawMessage(r.Properties)})
		}
		return err
	})
	return events, err
}

func inTopic(ctx context.Context, brokers []string, topic string) ([]sdk.Event, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	left, err := countRecords(ctx, c, topic)
	if err != nil {
		return nil, err
	}
	var events []sdk.Event
	for left > 0 {
		fetched := c.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			return nil, err
		}
		left -= int64(fetched.NumRecords())
		fetched.EachRecord(func(r *kgo.Record) { events = append(events, lines(r.Value)...) })
	}
	return events, nil
}

// countRecords returns the number of records in a topic from which none was removed.
func countRecords(ctx context.Context, c *kgo.Client, topic string) (int64, error) {
	about := kmsg.NewPtrMetadataRequest()
	about.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr(topic)}}
	known, err := about.RequestWith(ctx, c)
	if err != nil || len(known.Topics) == 0 || len(known.Topics[0].Partitions) == 0 {
		return 0, err
	}
	ends := kmsg.NewPtrListOffsetsRequest()
	ends.ReplicaID = -1
	ends.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic}}
	for _, p := range known.Topics[0].Partitions {
		end := kmsg.NewListOffsetsRequestTopicPartition()
		end.Partition, end.Timestamp = p.Partition, -1
		ends.Topics[0].Partitions = append(ends.Topics[0].Partitions, end)
	}
	answer, err := ends.RequestWith(ctx, c)
	if err != nil {
		return 0, err
	}
	var count int64
	for _, p := range answer.Topics[0].Partitions {
		if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
			return 0, err
		}
		count += p.Offset
	}
	return count, nil
}

// mailbox is a mail server that counts.
type mailbox struct{ mails atomic.Int64 }

func (b *mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return letter{b}, nil }

type letter struct{ *mailbox }

func (letter) Reset()                               { /* nothing is kept */ }
func (letter) Logout() error                        { return nil }
func (letter) Mail(string, *smtp.MailOptions) error { return nil }
func (letter) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (l letter) Data(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	l.mails.Add(1)
	return err
}
