package kafka_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/guidonhq/guidon/plugins/sink/kafka"
	"github.com/guidonhq/guidon/sdk"
)

// brokers starts a cluster in memory.
func brokers(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(3, "events", "events-1", "events-2")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func opened(t *testing.T, c *kfake.Cluster, settings string) *kafka.Sink {
	t.Helper()
	s, err := try(t, c.ListenAddrs(), settings)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func try(t *testing.T, addresses []string, settings string) (*kafka.Sink, error) {
	t.Helper()
	s := kafka.New()
	list, _ := json.Marshal(addresses)
	if err := sdk.DecodeConfig([]byte(`{"brokers": `+string(list)+settings+`}`), s.Config()); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		return s, err
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := s.Open(ctx, sdk.OpenRequest{Instance: "test"})
	return s, err
}

func events(n int, change func(i int, ev *sdk.Event)) *sdk.Batch {
	b := &sdk.Batch{ID: "b", FirstSeq: 1, LastSeq: uint64(n)}
	at := time.Date(2026, 5, 1, 10, 0, 0, 123000000, time.UTC)
	for i := range n {
		id := uuid.New()
		ev := sdk.Event{
			UUID: id.String(), ProjectID: 1, Name: "paid", DistinctID: fmt.Sprint("user ", i%7), Timestamp: at, ReceivedAt: at,
			Properties: fmt.Appendf(nil, `{"n":%d}`, i),
		}
		if change != nil {
			change(i, &ev)
		}
		b.Records = append(b.Records, sdk.Record{UUID: id, JSON: ev.AppendJSON(nil), ReceivedAt: at, ProjectID: ev.ProjectID})
	}
	return b
}

// consume reads at least n records of topics.
func consume(t *testing.T, c *kfake.Cluster, n int, topics ...string) []*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out []*kgo.Record
	for len(out) < n {
		fetched := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("%d records of %d after 20 s", len(out), n)
		}
		out = append(out, fetched.Records()...)
	}
	return out
}

func TestEventsAreRecordsKeyedByPerson(t *testing.T) {
	t.Parallel()
	for _, compression := range []string{"none", "zstd", "lz4", "snappy", "gzip"} {
		t.Run(compression, func(t *testing.T) {
			t.Parallel()
			c := brokers(t)
			s := opened(t, c, `, "compression": "`+compression+`"`)
			b := events(200, nil)
			r, err := s.Write(t.Context(), b)
			if err != nil || r.Outcome != sdk.Committed || r.CommittedThrough != 200 {
				t.Fatalf("%+v, %v", r, err)
			}
			last := map[string]int{}
			for _, rec := range consume(t, c, 200, "events") {
				var ev sdk.Event
				if err := json.Unmarshal(rec.Value, &ev); err != nil {
					t.Fatal(err)
				}
				if string(rec.Key) != ev.DistinctID || string(rec.Headers[0].Value) != ev.UUID || string(rec.Headers[1].Value) != "1" ||
					!rec.Timestamp.Equal(ev.Timestamp) {
					t.Fatalf("record %+v of %+v", rec, ev)
				}
				var p struct{ N int }
				if err := json.Unmarshal(ev.Properties, &p); err != nil {
					t.Fatal(err)
				}
				if before, ok := last[ev.DistinctID]; ok && before >= p.N {
					t.Errorf("event %d of %s came after %d", p.N, ev.DistinctID, before)
				}
				last[ev.DistinctID] = p.N
			}
		})
	}
}

func TestTheTopicMayNameTheProject(t *testing.T) {
	t.Parallel()
	c := brokers(t)
	s := opened(t, c, `, "topic": "events-{project}"`)
	if _, err := s.Write(t.Context(), events(10, func(i int, ev *sdk.Event) { ev.ProjectID = int64(1 + i%2) })); err != nil {
		t.Fatal(err)
	}
	if got := consume(t, c, 5, "events-2"); len(got) != 5 {
		t.Errorf("%d records", len(got))
	}
}

func TestAnEventThatIsTooLargeIsReportedAlone(t *testing.T) {
	t.Parallel()
	c := brokers(t)
	s := opened(t, c, `, "max_bytes": 20000, "compression": "none"`)
	b := events(10, func(i int, ev *sdk.Event) {
		if i == 4 {
			ev.Properties = []byte(`{"x":"` + strings.Repeat("y", 30000) + `"}`)
		}
	})
	r, err := s.Write(t.Context(), b)
	if err != nil || r.Outcome != sdk.Partial || len(r.Failures) != 1 || r.Failures[0].Index != 4 || r.Failures[0].Err.Class != sdk.ClassPermanent {
		t.Fatalf("%+v, %v", r, err)
	}
	consume(t, c, 9, "events")
}

// The brokers fail in every second answer: nothing is lost, and whatever comes
// twice has the same uuid.
func TestNothingIsLostWhenBrokersFailForTheMoment(t *testing.T) {
	t.Parallel()
	c := brokers(t)
	var calls atomic.Int64
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if calls.Add(1)%2 == 1 {
			return nil, errors.New("cut"), true
		}
		return nil, nil, false
	})
	s := opened(t, c, "")
	b := events(500, nil)
	var err error
	for range 10 { // as the host does
		if _, err = s.Write(t.Context(), b); err == nil {
			break
		}
		if class(err) != sdk.ClassTransient {
			t.Fatalf("class of %v", err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, rec := range consume(t, c, 500, "events") {
		there[string(rec.Headers[0].Value)] = true
	}
	if len(there) != 500 {
		t.Errorf("%d events of 500", len(there))
	}
}

func TestErrorsSayWhoCanHelp(t *testing.T) {
	t.Parallel()
	c := brokers(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "ada", "right"))
	tests := map[string]struct {
		addresses []string
		settings  string
		class     sdk.Class
		pointer   string
	}{
		"no broker":            {[]string{}, "", sdk.ClassConfig, "/brokers"},
		"not a topic":          {c.ListenAddrs(), `, "topic": "a b"`, sdk.ClassConfig, "/topic"},
		"a user without proof": {c.ListenAddrs(), `, "sasl": {"mechanism": "plain", "user": "ada"}`, sdk.ClassConfig, "/sasl"},
		"no such file":         {c.ListenAddrs(), `, "tls": {"enabled": true, "ca_file": "/nowhere.pem"}`, sdk.ClassConfig, "/tls/ca_file"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := try(t, tt.addresses, tt.settings)
			e, ok := errors.AsType[*sdk.Error](err)
			if !ok || e.Class != tt.class || e.Pointer != tt.pointer {
				t.Fatalf("got %#v", err)
			}
		})
	}
	for password, ok := range map[string]bool{"right": true, "wrong": false} {
		if _, err := try(t, c.ListenAddrs(), `, "sasl": {"mechanism": "plain", "user": "ada", "password": "`+password+`"}`); (err == nil) != ok {
			t.Errorf("with the %s password: %v", password, err)
		}
	}
}

func TestAMissingTopicIsTheConfigsFault(t *testing.T) {
	t.Parallel()
	s := opened(t, brokers(t), `, "topic": "nowhere"`)
	_, err := s.Write(t.Context(), events(1, nil))
	if class(err) != sdk.ClassConfig || !strings.Contains(err.Error(), strings.ToLower(kerr.UnknownTopicOrPartition.Message)) {
		t.Errorf("got %v", err)
	}
	c := brokers(t, kfake.AllowAutoTopicCreation())
	s = opened(t, c, `, "topic": "new", "create": true`)
	if _, err := s.Write(t.Context(), events(1, nil)); err != nil {
		t.Error(err)
	}
}

func class(err error) sdk.Class {
	if e, ok := errors.AsType[*sdk.Error](err); ok {
		return e.Class
	}
	return sdk.ClassUnspecified
}
