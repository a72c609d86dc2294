package sdk_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// counter is a sink whose values are watched.
type counter struct {
	cfg struct {
		Limit int    `json:"limit" min:"1"`
		Token string `json:"token" secret:"true"`
	}
	opened, closed bool
	running        atomic.Int32
}

var (
	watch   sync.Mutex
	sinks   []*counter
	tokens  []string
	maximum atomic.Int32
)

func newCounter() sdk.Sink {
	c := &counter{}
	c.cfg.Limit = 2
	watch.Lock()
	defer watch.Unlock()
	sinks = append(sinks, c)
	return c
}

func (c *counter) Config() any { return &c.cfg }

func (c *counter) Open(context.Context, sdk.OpenRequest) (sdk.SinkProperties, error) {
	if c.opened {
		return sdk.SinkProperties{}, errors.New("opened twice")
	}
	c.opened = true
	watch.Lock()
	tokens = append(tokens, c.cfg.Token)
	watch.Unlock()
	return sdk.SinkProperties{MaxInFlight: c.cfg.Limit, Dedup: sdk.DedupByEventID, Durability: sdk.DurabilityReplicated}, nil
}

func (c *counter) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	n := c.running.Add(1)
	for m := maximum.Load(); n > m && !maximum.CompareAndSwap(m, n); m = maximum.Load() {
	}
	defer c.running.Add(-1)
	if c.closed || !c.opened {
		return sdk.WriteResult{}, errors.New("written to while closed")
	}
	if b.ID == "slow" { // until two run at once, and a little longer for a third
		for deadline := time.Now().Add(time.Minute); maximum.Load() < 2 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if _, err := b.Events(); err != nil {
		return sdk.WriteResult{}, sdk.Permanent(err)
	}
	sdk.Log(ctx).Debug("written")
	return b.Committed(), nil
}

func (c *counter) Close(context.Context) error {
	c.closed = true
	return nil
}

func configure(t testing.TB, c pluginv1.PluginServiceClient, id string, generation uint64, text string) *pluginv1.ConfigureResponse {
	t.Helper()
	out, err := c.Configure(t.Context(), &pluginv1.ConfigureRequest{
		InstanceId: id, Generation: generation, Config: &pluginv1.Config{ConfigJson: []byte(text)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func request(instance, id string, json ...string) *sinkv1.WriteBatchRequest {
	r := &sinkv1.RecordBatch{Projects: []int64{7}}
	for _, text := range json {
		r.Ids = append(r.Ids, make([]byte, 16)...)
		r.Json = append(r.Json, []byte(text))
		r.ReceivedUs = append(r.ReceivedUs, 1)
		r.ProjectIndex = append(r.ProjectIndex, 0)
	}
	return &sinkv1.WriteBatchRequest{
		InstanceId: instance, BatchId: id, FirstSeq: 1, LastSeq: uint64(len(json)), Payload: &sinkv1.WriteBatchRequest_Records{Records: r},
	}
}

func TestTheLifeOfAnInstance(t *testing.T) {
	watch.Lock()
	sinks = nil
	watch.Unlock()
	conn := sdk.Dial(t, sdk.Plugin{Name: "acme/counter", Version: "1.0.0", Sink: newCounter})
	p, s := pluginv1.NewPluginServiceClient(conn), sinkv1.NewSinkServiceClient(conn)
	ctx := t.Context()

	info, err := p.Info(ctx, &pluginv1.InfoRequest{})
	if err != nil || info.GetName() != "acme/counter" || info.GetKinds()[0] != pluginv1.Kind_KIND_SINK || info.GetMaxMessageBytes() != 64<<20 {
		t.Fatalf("%v %v", info, err)
	}
	write := func(id, batch string) *sinkv1.WriteBatchResponse {
		t.Helper()
		out, err := s.WriteBatch(ctx, request(id, batch, `{}`))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	refused := func(out *sinkv1.WriteBatchResponse, code string) {
		t.Helper()
		if out.GetOutcome() != sinkv1.WriteBatchResponse_OUTCOME_REJECTED || out.GetError().GetCode() != code ||
			out.GetError().GetClass() != pluginv1.Error_CLASS_NOT_CONNECTED {
			t.Errorf("got %v", out)
		}
	}

	refused(write("a", "b"), "unknown_instance")
	if out := configure(t, p, "a", 2, `{"limit": 0}`); out.GetAccepted() || out.GetDiagnostics()[0].GetPointer() != "/limit" {
		t.Errorf("%v", out)
	}
	if out := configure(t, p, "a", 2, `{"limit": 3}`); !out.GetAccepted() {
		t.Errorf("%v", out)
	}
	refused(write("a", "b"), "not_open")
	open, err := s.Open(ctx, &sinkv1.OpenRequest{InstanceId: "a"})
	if err != nil || !open.GetOpened() || open.GetProperties().GetMaxInFlight() != 3 ||
		open.GetProperties().GetDedup() != sinkv1.SinkProperties_DEDUP_BY_EVENT_ID ||
		open.GetProperties().GetOrdering() != sinkv1.SinkProperties_ORDERING_NONE {
		t.Fatalf("%v %v", open, err)
	}
	if out := write("a", "b"); out.GetOutcome() != sinkv1.WriteBatchResponse_OUTCOME_COMMITTED || out.GetCommittedThrough() != 1 {
		t.Errorf("%v", out)
	}

	// The same generation changes nothing, an older one is refused, a newer
	// one closes the sink until it is opened again.
	if out := configure(t, p, "a", 2, `{"limit": 3}`); !out.GetAccepted() {
		t.Errorf("%v", out)
	}
	if out := write("a", "b"); out.GetOutcome() != sinkv1.WriteBatchResponse_OUTCOME_COMMITTED {
		t.Errorf("%v", out)
	}
	if out := configure(t, p, "a", 1, `{"limit": 3}`); out.GetAccepted() || out.GetError().GetCode() != "old_generation" {
		t.Errorf("%v", out)
	}
	if out := configure(t, p, "a", 3, `{"limit": 1}`); !out.GetAccepted() {
		t.Errorf("%v", out)
	}
	refused(write("a", "b"), "not_open")
	for range 2 { // the second Open closes the first value and opens another
		if open, err := s.Open(ctx, &sinkv1.OpenRequest{InstanceId: "a"}); err != nil || !open.GetOpened() {
			t.Fatalf("%v %v", open, err)
		}
	}

	health, err := p.Health(ctx, &pluginv1.HealthRequest{})
	if err != nil || !health.GetServing() || len(health.GetInstances()) != 1 ||
		health.GetInstances()[0].GetStatus() != pluginv1.InstanceHealth_STATUS_READY || health.GetInstances()[0].GetGeneration() != 3 {
		t.Errorf("%v %v", health, err)
	}
	if out, err := p.Close(ctx, &pluginv1.CloseRequest{InstanceId: "a"}); err != nil || !out.GetClosed() {
		t.Errorf("%v %v", out, err)
	}
	refused(write("a", "b"), "unknown_instance")
	watch.Lock()
	defer watch.Unlock()
	for i, sink := range sinks {
		if sink.opened != sink.closed {
			t.Errorf("sink %d: opened %t, closed %t", i, sink.opened, sink.closed)
		}
	}
}

func TestInstancesDoNotMixAndSecretsReachTheirPlace(t *testing.T) {
	conn := sdk.Dial(t, sdk.Plugin{Name: "counter", Version: "1.0.0", Sink: newCounter})
	p, s := pluginv1.NewPluginServiceClient(conn), sinkv1.NewSinkServiceClient(conn)
	for _, id := range []string{"a", "b"} {
		out, err := p.Configure(t.Context(), &pluginv1.ConfigureRequest{InstanceId: id, Generation: 1, Config: &pluginv1.Config{
			ConfigJson: []byte(`{"token": "${env:X}", "limit": "${env:Y}"}`),
			Secrets:    map[string][]byte{"/token": []byte("token of " + id), "/limit": []byte("4")},
		}})
		if err != nil || !out.GetAccepted() {
			t.Fatalf("%v %v", out, err)
		}
		open, err := s.Open(t.Context(), &sinkv1.OpenRequest{InstanceId: id})
		if err != nil || open.GetProperties().GetMaxInFlight() != 4 {
			t.Fatalf("%v %v", open, err)
		}
	}
	watch.Lock()
	got := strings.Join(tokens, ", ")
	watch.Unlock()
	if !strings.HasSuffix(got, "token of a, token of b") {
		t.Errorf("tokens %s", got)
	}
	out, err := p.Validate(t.Context(), &pluginv1.ValidateRequest{InstanceId: "c", Config: &pluginv1.Config{
		ConfigJson: []byte(`{"limit": "${env:Y}"}`), Secrets: map[string][]byte{"/limit": []byte("hunter2")},
	}})
	if err != nil || out.GetValid() || strings.Contains(out.String(), "hunter2") {
		t.Errorf("%v %v", out, err)
	}
}

func TestNoMoreWritesRunThanTheSinkAllows(t *testing.T) {
	conn := sdk.Dial(t, sdk.Plugin{Name: "counter", Version: "1.0.0", Sink: newCounter})
	p, s := pluginv1.NewPluginServiceClient(conn), sinkv1.NewSinkServiceClient(conn)
	configure(t, p, "a", 1, `{"limit": 2}`)
	if _, err := s.Open(t.Context(), &sinkv1.OpenRequest{InstanceId: "a"}); err != nil {
		t.Fatal(err)
	}
	maximum.Store(0)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if out, err := s.WriteBatch(t.Context(), request("a", "slow", `{}`)); err != nil ||
				out.GetOutcome() != sinkv1.WriteBatchResponse_OUTCOME_COMMITTED {
				t.Errorf("%v %v", out, err)
			}
		})
	}
	wg.Wait()
	if n := maximum.Load(); n != 2 {
		t.Errorf("%d ran at once", n)
	}

	// Drain lets the work at hand finish and refuses what comes after. The first
	// of two batches waits for the second.
	maximum.Store(0)
	for range 2 {
		wg.Go(func() {
			if out, err := s.WriteBatch(t.Context(), request("a", "slow", `{}`)); err != nil {
				t.Errorf("%v %v", out, err)
			}
		})
	}
	for deadline := time.Now().Add(time.Minute); maximum.Load() < 2 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	drained, err := p.Drain(t.Context(), &pluginv1.DrainRequest{Deadline: durationpb.New(time.Minute)})
	if err != nil || !drained.GetDrained() {
		t.Errorf("%v %v", drained, err)
	}
	out, err := s.WriteBatch(t.Context(), request("a", "b", `{}`))
	if err != nil || out.GetError().GetCode() != "draining" || out.GetError().GetClass() != pluginv1.Error_CLASS_TRANSIENT {
		t.Errorf("%v %v", out, err)
	}
	wg.Wait()
}

func TestColumnsOfDifferentLengthsAreRefused(t *testing.T) {
	conn := sdk.Dial(t, sdk.Plugin{Name: "counter", Version: "1.0.0", Sink: newCounter})
	s := sinkv1.NewSinkServiceClient(conn)
	for name, spoil := range map[string]func(*sinkv1.RecordBatch){
		"ids":      func(r *sinkv1.RecordBatch) { r.Ids = r.Ids[:17] },
		"received": func(r *sinkv1.RecordBatch) { r.ReceivedUs = nil },
		"index":    func(r *sinkv1.RecordBatch) { r.ProjectIndex = append(r.ProjectIndex, 0) },
		"project":  func(r *sinkv1.RecordBatch) { r.ProjectIndex[1] = 9 },
	} {
		req := request("a", "b", `{}`, `{}`)
		spoil(req.GetRecords())
		if out, err := s.WriteBatch(t.Context(), req); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v %v", name, out, err)
		}
	}
}

func TestServeRefusesAPluginThatIsNotOne(t *testing.T) {
	t.Parallel()
	type untagged struct{ Path string }
	tests := []struct {
		name   string
		plugin sdk.Plugin
		says   string
	}{
		{"name with capitals", sdk.Plugin{Name: "Foo", Version: "1.0.0", Sink: newCounter}, "lower case"},
		{"no version", sdk.Plugin{Name: "foo", Version: "latest", Sink: newCounter}, "not semantic"},
		{"nothing to offer", sdk.Plugin{Name: "foo", Version: "1.0.0"}, "offers nothing"},
		{"config without tags", sdk.Plugin{Name: "foo", Version: "1.0.0", Sink: func() sdk.Sink { return &oddConfig{config: &untagged{}} }}, "no json tag"},
		{"config of an odd type", sdk.Plugin{Name: "foo", Version: "1.0.0", Sink: func() sdk.Sink {
			return &oddConfig{config: &struct {
				C chan int `json:"c"`
			}{}}
		}}, "cannot be configured"},
	}
	for _, tt := range tests {
		if err := sdk.Check(tt.plugin); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

type oddConfig struct {
	counter
	config any
}

func (o *oddConfig) Config() any { return o.config }
