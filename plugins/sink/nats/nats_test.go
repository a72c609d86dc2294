package nats_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/guidonhq/guidon/plugins/sink/nats"
	"github.com/guidonhq/guidon/sdk"
)

// brokerOptions change the server that broker starts.
type brokerOptions struct {
	port       int // 0 for a free one
	token      string
	maxPayload int  // 0 for that of the server
	noStreams  bool // without JetStream
}

func opened(t *testing.T, url, settings string) *nats.Sink {
	t.Helper()
	s, err := try(t, url, settings)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func try(t *testing.T, url, settings string) (*nats.Sink, error) {
	t.Helper()
	s := nats.New()
	if err := sdk.DecodeConfig([]byte(`{"servers": ["`+url+`"]`+settings+`}`), s.Config()); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		return s, err
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	_, err := s.Open(t.Context(), sdk.OpenRequest{Instance: "test"})
	return s, err
}

func events(n int, change func(i int, ev *sdk.Event)) *sdk.Batch {
	b := &sdk.Batch{ID: "b", FirstSeq: 1, LastSeq: uint64(n)}
	at := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	for i := range n {
		id := uuid.New()
		ev := sdk.Event{
			UUID: id.String(), ProjectID: 1, Name: "paid", DistinctID: fmt.Sprint("user ", i), Timestamp: at, ReceivedAt: at,
			Properties: fmt.Appendf(nil, `{"n":%d}`, i),
		}
		if change != nil {
			change(i, &ev)
		}
		b.Records = append(b.Records, sdk.Record{UUID: id, JSON: ev.AppendJSON(nil), ReceivedAt: at, ProjectID: ev.ProjectID})
	}
	return b
}

// stored returns every message of the stream, in order.
func stored(t *testing.T, url string) []*jetstream.RawStreamMsg {
	t.Helper()
	messages, err := readStream(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

// readStream returns every message of the stream, none if there is no stream yet.
func readStream(ctx context.Context, url string) (out []*jetstream.RawStreamMsg, err error) {
	c, err := natsgo.Connect(url)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	js, err := jetstream.New(c)
	if err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, "GUIDON_EVENTS")
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	state := stream.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq && seq > 0; seq++ {
		m, err := stream.GetMsg(ctx, seq)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func TestEventsAreMessagesEachOnce(t *testing.T) {
	t.Parallel()
	url := broker(t, t.TempDir(), brokerOptions{}).URL()
	s := opened(t, url, `, "create": true, "subject": "events.{project}.{event}"`)
	b := events(300, func(i int, ev *sdk.Event) {
		if i == 5 {
			ev.Name = "a b.c*d>e\u00a0f"
		}
	})
	for attempt := range 3 {
		r, err := s.Write(t.Context(), b)
		if err != nil || r.Outcome != sdk.Committed || r.Duplicates != uint32(300*min(attempt, 1)) {
			t.Fatalf("attempt %d: %+v, %v", attempt, r, err)
		}
	}
	got := stored(t, url)
	if len(got) != 300 {
		t.Fatalf("%d messages", len(got))
	}
	for i, m := range got {
		var ev sdk.Event
		if err := json.Unmarshal(m.Data, &ev); err != nil || ev.DistinctID != fmt.Sprint("user ", i) {
			t.Fatalf("message %d is %s", i, m.Data)
		}
		if m.Header.Get("Nats-Msg-Id") != "1/"+ev.UUID {
			t.Errorf("id %q", m.Header.Get("Nats-Msg-Id"))
		}
		if want := map[bool]string{true: "events.1.a_b_c_d_e_f", false: "events.1.paid"}[i == 5]; m.Subject != want {
			t.Errorf("subject %q", m.Subject)
		}
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnEventThatIsTooLargeIsReportedAlone(t *testing.T) {
	t.Parallel()
	url := broker(t, t.TempDir(), brokerOptions{maxPayload: 4096}).URL()
	s := opened(t, url, `, "create": true`)
	r, err := s.Write(t.Context(), events(5, func(i int, ev *sdk.Event) {
		if i == 2 {
			ev.Properties = []byte(`{"x":"` + strings.Repeat("y", 5000) + `"}`)
		}
	}))
	if err != nil || len(r.Failures) != 1 || r.Failures[0].Index != 2 || r.Failures[0].Err.Class != sdk.ClassPermanent {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := stored(t, url); len(got) != 4 {
		t.Errorf("%d messages", len(got))
	}
}

// The server goes away and comes back on the same address; batches are cut and
// repeated at random: each event is in the stream once.
func TestARestartOfTheServerLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := broker(t, dir, brokerOptions{})
	url := first.URL()
	s := opened(t, url, `, "create": true, "timeout": "2s"`)
	b := events(400, nil)
	part := func(from, to int) *sdk.Batch {
		return &sdk.Batch{ID: fmt.Sprint(from), FirstSeq: uint64(from + 1), LastSeq: uint64(to), Records: b.Records[from:to]}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(5000))*time.Microsecond)
		from := r.IntN(200)
		_, _ = s.Write(ctx, part(from, from+1+r.IntN(50)))
		cancel()
	}
	first.Stop()
	if _, err := s.Write(t.Context(), part(0, 10)); class(err) != sdk.ClassTransient && class(err) != sdk.ClassConfig {
		t.Errorf("while the server is away: %v", err)
	}
	second := broker(t, dir, brokerOptions{port: portOf(t, url)})
	deadline := time.Now().Add(time.Minute)
	for from := 0; from < 400; from += 100 {
		for {
			_, err := s.Write(t.Context(), part(from, from+100))
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	if got := stored(t, second.URL()); len(got) != 400 {
		t.Errorf("%d messages of 400", len(got))
	}
}

func portOf(t *testing.T, url string) (port int) {
	t.Helper()
	if _, err := fmt.Sscanf(url[strings.LastIndex(url, ":")+1:], "%d", &port); err != nil {
		t.Fatal(err)
	}
	return port
}

func TestErrorsSayWhoCanHelp(t *testing.T) {
	t.Parallel()
	url := broker(t, t.TempDir(), brokerOptions{token: "right"}).URL()
	plain := broker(t, t.TempDir(), brokerOptions{noStreams: true}).URL()
	tests := map[string]struct {
		url, settings string
		class         sdk.Class
		pointer       string
	}{
		"a subject with a wildcard": {url, `, "subject": "a.*"`, sdk.ClassConfig, "/subject"},
		"a word that is no word":    {url, `, "subject": "a.{nothing}"`, sdk.ClassConfig, "/subject"},
		"a name of no stream":       {url, `, "stream": "a.b"`, sdk.ClassConfig, "/stream"},
		"no such stream":            {url, `, "token": "right"`, sdk.ClassConfig, "/stream"},
		"a wrong token":             {url, `, "token": "wrong"`, sdk.ClassConfig, "/servers"},
		"nobody keeps streams":      {plain, "", sdk.ClassTransient, ""},
		"nobody listens":            {"nats://127.0.0.1:1", "", sdk.ClassTransient, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := try(t, tt.url, tt.settings)
			e, ok := errors.AsType[*sdk.Error](err)
			if !ok || e.Class != tt.class || e.Pointer != tt.pointer {
				t.Fatalf("got %#v", err)
			}
		})
	}
}

func TestASubjectThatAnotherStreamTakesIsTheConfigsFault(t *testing.T) {
	t.Parallel()
	url := broker(t, t.TempDir(), brokerOptions{}).URL()
	opened(t, url, `, "create": true, "stream": "OTHER", "subject": "other"`)
	opened(t, url, `, "create": true, "subject": "mine"`)
	for _, subject := range []string{"other", "nobodys"} {
		s := opened(t, url, `, "subject": "`+subject+`"`)
		if _, err := s.Write(t.Context(), events(1, nil)); class(err) != sdk.ClassConfig {
			t.Errorf("subject %s: %v", subject, err)
		}
	}
}

func class(err error) sdk.Class {
	if e, ok := errors.AsType[*sdk.Error](err); ok {
		return e.Class
	}
	return sdk.ClassUnspecified
}
