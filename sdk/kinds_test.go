package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/queryv1alpha1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// pigeon is a notifier with configured answers.
type pigeon struct {
	cfg struct {
		Flight int `json:"flight"`
	}
	fly func(ctx context.Context, n *sdk.Notification) (sdk.NotifyResult, error)
}

func (p *pigeon) Config() any { return &p.cfg }

func (p *pigeon) Open(context.Context, sdk.OpenRequest) (sdk.NotifierProperties, error) {
	return sdk.NotifierProperties{MaxInFlight: p.cfg.Flight}, nil
}

func (p *pigeon) Notify(ctx context.Context, n *sdk.Notification) (sdk.NotifyResult, error) {
	return p.fly(ctx, n)
}

func (p *pigeon) Close(context.Context) error { return nil }

func (p *pigeon) Metrics(context.Context) ([]byte, error) {
	return []byte("flights_total 7\n# EOF\n"), nil
}

// loft serves a notifier and opens an instance.
func loft(t testing.TB, config string, fly func(context.Context, *sdk.Notification) (sdk.NotifyResult, error)) (notifyv1.NotifierServiceClient, *grpc.ClientConn) {
	t.Helper()
	conn := sdk.Dial(t, sdk.Plugin{Name: "pigeon", Version: "1.0.0", Notifier: func() sdk.Notifier { return &pigeon{fly: fly} }})
	if out := configure(t, pluginv1.NewPluginServiceClient(conn), "a", 1, config); !out.GetAccepted() {
		t.Fatal(out)
	}
	c := notifyv1.NewNotifierServiceClient(conn)
	if out, err := c.Open(t.Context(), &notifyv1.OpenRequest{InstanceId: "a"}); err != nil || !out.GetOpened() ||
		out.GetProperties().GetDedupWindow().AsDuration() != time.Hour {
		t.Fatal(out, err)
	}
	return c, conn
}

func letters(ids ...string) *notifyv1.NotifyRequest {
	req := &notifyv1.NotifyRequest{InstanceId: "a"}
	for _, id := range ids {
		req.Items = append(req.Items, &notifyv1.Notification{NotificationId: id, Attempt: 1, EventJson: []byte(`{"event":"e","properties":{}}`)})
	}
	return req
}

func outcomes(out *notifyv1.NotifyResponse) string {
	var words []string
	for _, r := range out.GetResults() {
		words = append(words, sdk.NotifyOutcome(r.GetOutcome()).String())
	}
	return strings.Join(words, " ")
}

func TestNotificationsGoInOrderAsManyAtATimeAsAllowed(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	running, most := 0, 0
	c, _ := loft(t, `{"flight": 1}`, func(_ context.Context, n *sdk.Notification) (sdk.NotifyResult, error) {
		mu.Lock()
		running++
		most = max(most, running)
		order = append(order, n.ID)
		mu.Unlock()
		defer func() { mu.Lock(); running--; mu.Unlock() }()
		return n.Delivered(""), nil
	})
	ids := []string{"a", "b", "c", "d", "e", "f"}
	if out, err := c.Notify(t.Context(), letters(ids...)); err != nil || outcomes(out) != strings.TrimSpace(strings.Repeat("delivered ", 6)) {
		t.Fatal(out, err)
	}
	if !slices.Equal(order, ids) || most != 1 {
		t.Errorf("%v, %d at once", order, most)
	}
}

func TestANotificationIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	var flights atomic.Int32
	landing := make(chan struct{})
	c, _ := loft(t, `{"flight": 4}`, func(ctx context.Context, n *sdk.Notification) (sdk.NotifyResult, error) {
		flights.Add(1)
		switch n.ID {
		case "slow":
			<-landing
		case "fails first":
			if flights.Load() == 1 {
				return sdk.NotifyResult{}, errors.New("not yet")
			}
		}
		return n.Delivered("m1"), nil
	})
	for _, want := range []string{"retry", "delivered", "duplicate"} {
		out, err := c.Notify(t.Context(), letters("fails first"))
		if err != nil || outcomes(out) != want {
			t.Errorf("%v %v, want %s", out, err, want)
		}
		if want == "duplicate" && out.GetResults()[0].GetProviderMessageId() != "m1" {
			t.Errorf("%v", out)
		}
	}

	// Twice at once: the second waits for the first, and is a duplicate.
	flights.Store(0)
	got := make(chan string, 2)
	for range 2 {
		go func() {
			out, err := c.Notify(t.Context(), letters("slow"))
			got <- fmt.Sprint(outcomes(out), err)
		}()
	}
	close(landing)
	both := []string{<-got, <-got}
	slices.Sort(both)
	if both[0] != "delivered<nil>" || both[1] != "duplicate<nil>" || flights.Load() != 1 {
		t.Errorf("%q, %d flights", both, flights.Load())
	}

	// Without an id there is nothing to know it by.
	for range 2 {
		if out, err := c.Notify(t.Context(), letters("")); err != nil || outcomes(out) != "delivered" {
			t.Errorf("%v %v", out, err)
		}
	}
}

func TestWhatANotifierReturnsIsToldAsItIs(t *testing.T) {
	t.Parallel()
	c, _ := loft(t, `{}`, func(_ context.Context, n *sdk.Notification) (sdk.NotifyResult, error) {
		switch n.ID {
		case "nothing":
			return sdk.NotifyResult{}, nil
		case "panic":
			panic("no luck")
		case "config":
			return n.Delivered("x"), sdk.ConfigError("/flight", errors.New("no wings"))
		case "rate":
			return sdk.NotifyResult{Rate: &sdk.Rate{Remaining: -1, ResetAfter: time.Minute, Scope: "roof"}}, sdk.Throttled(errors.New("tired"), time.Second)
		}
		return sdk.NotifyResult{}, sdk.Permanent(errors.New("shot"))
	})
	req := letters("nothing", "panic", "config", "config", "rate", "other", "expired", "broken")
	req.Items[3].Destination = "elsewhere"
	req.Items[6].ExpiresUs = 1
	req.Items[7].EventJson = []byte(`{`)
	out, err := c.Notify(t.Context(), req)
	if err != nil || outcomes(out) != "unspecified retry retry dropped retry dropped dropped dropped" {
		t.Fatalf("%s %v %v", outcomes(out), out, err)
	}
	for i, want := range []string{"", "panic", "config", "config", "throttled", "permanent", "expired", "permanent"} {
		if got := out.GetResults()[i].GetError().GetCode(); got != want {
			t.Errorf("%d: %q, want %q", i, got, want)
		}
	}
	if rate := out.GetResults()[4].GetRate(); rate.GetScope() != "roof" || rate.GetRemaining() != 0 {
		t.Errorf("rate %v", rate)
	}
	if out, err := c.Preview(t.Context(), &notifyv1.PreviewRequest{InstanceId: "a"}); err != nil || out.GetRendered() ||
		out.GetError().GetClass() != pluginv1.Error_CLASS_UNSUPPORTED {
		t.Errorf("%v %v", out, err)
	}
}

func TestNotificationsThatHaveNoTurnBeforeTheDeadlineAreToBeSentAgain(t *testing.T) {
	t.Parallel()
	c, _ := loft(t, `{"flight": 1}`, func(ctx context.Context, n *sdk.Notification) (sdk.NotifyResult, error) {
		if n.ID == "slow" {
			<-ctx.Done()
			return sdk.NotifyResult{}, ctx.Err()
		}
		return n.Delivered(""), nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	out, err := c.Notify(ctx, letters("quick", "slow", "never"))
	if err != nil || outcomes(out) != "delivered retry retry" || out.GetResults()[2].GetError().GetCode() != "busy" {
		t.Fatal(out, err)
	}
}

func TestWhoIsNotAskedForAnswersThatItIsNotOpen(t *testing.T) {
	t.Parallel()
	c, conn := loft(t, `{}`, func(_ context.Context, n *sdk.Notification) (sdk.NotifyResult, error) { return n.Delivered(""), nil })
	req := letters("x")
	req.InstanceId = "b"
	if out, err := c.Notify(t.Context(), req); err != nil || out.GetError().GetCode() != "unknown_instance" || len(out.GetResults()) > 0 {
		t.Error(out, err)
	}
	// The plugin is no sink.
	if _, err := sinkv1.NewSinkServiceClient(conn).Open(t.Context(), &sinkv1.OpenRequest{InstanceId: "a"}); status.Code(err) != codes.Unimplemented {
		t.Error(err)
	}
	p := pluginv1.NewPluginServiceClient(conn)
	out, err := p.Configure(t.Context(), &pluginv1.ConfigureRequest{InstanceId: "b", Kind: pluginv1.Kind_KIND_SINK})
	if err != nil || out.GetAccepted() || out.GetError().GetCode() != "kind_not_offered" {
		t.Error(out, err)
	}
	if _, err := p.ConfigSchema(t.Context(), &pluginv1.ConfigSchemaRequest{Kind: pluginv1.Kind_KIND_MATCHER}); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
}

func TestMetricsAndTheLevelOfTheLog(t *testing.T) {
	t.Parallel()
	_, conn := loft(t, `{}`, nil)
	p := pluginv1.NewPluginServiceClient(conn)
	out, err := p.Metrics(t.Context(), &pluginv1.MetricsRequest{})
	if err != nil || !out.GetCollected() || len(out.GetInstances()) != 1 || !strings.Contains(string(out.GetInstances()[0].GetOpenmetrics()), "flights_total 7") {
		t.Error(out, err)
	}
	info, err := p.Info(t.Context(), &pluginv1.InfoRequest{})
	if err != nil || !slices.Contains(info.GetFeatures(), "notifier/metrics/v1") || slices.Contains(info.GetFeatures(), "notifier/preview/v1") {
		t.Error(info, err)
	}
	if out, err := p.SetLogLevel(t.Context(), &pluginv1.SetLogLevelRequest{Level: "info"}); err != nil || !out.GetSet() {
		t.Error(out, err)
	}
	if _, err := p.SetLogLevel(t.Context(), &pluginv1.SetLogLevelRequest{Level: "loud"}); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
}

// judge is a matcher whose programs compare with their value.
type judge struct {
	operators []sdk.Operator
	compiled  *atomic.Int32
}

func (j judge) Open(context.Context, sdk.OpenRequest) (sdk.MatcherProperties, error) {
	return sdk.MatcherProperties{}, nil
}

func (j judge) Operators() []sdk.Operator { return j.operators }

func (j judge) Compile(_ string, value json.RawMessage) (sdk.Program, error) {
	j.compiled.Add(1)
	if string(value) == `"none"` {
		return nil, nil
	}
	return sdk.ProgramFunc(func(in *sdk.Input) sdk.Verdict { return sdk.Matches(string(in.Value) == string(value)) }), nil
}

func (j judge) Close(context.Context) error { return nil }

func court(t testing.TB, operators ...sdk.Operator) (matchv1.MatcherServiceClient, *atomic.Int32, *matchv1.OpenResponse) {
	t.Helper()
	var compiled atomic.Int32
	conn := sdk.Dial(t, sdk.Plugin{Name: "judge", Version: "1.0.0", Matcher: func() sdk.Matcher { return judge{operators, &compiled} }})
	if out := configure(t, pluginv1.NewPluginServiceClient(conn), "a", 1, `{}`); !out.GetAccepted() {
		t.Fatal(out)
	}
	c := matchv1.NewMatcherServiceClient(conn)
	opened, err := c.Open(t.Context(), &matchv1.OpenRequest{InstanceId: "a"})
	if err != nil {
		t.Fatal(err)
	}
	return c, &compiled, opened
}

func TestAProgramIsCompiledOnceAndAskedForWhenItIsNotKnown(t *testing.T) {
	t.Parallel()
	c, compiled, opened := court(t, sdk.Operator{ID: "judge/same"})
	if !opened.GetOpened() || opened.GetProperties().GetMaxInFlight() == 0 {
		t.Fatal(opened)
	}
	ask := func(value string) *matchv1.MatchBatchResponse {
		t.Helper()
		out, err := c.MatchBatch(t.Context(), &matchv1.MatchBatchRequest{
			InstanceId: "a", Values: [][]byte{[]byte(`1`), []byte(`2`)},
			Programs:    []*matchv1.Program{{ProgramId: []byte("one"), OperatorId: "judge/same", ValueJson: []byte(value)}},
			PairProgram: []uint32{0, 0, 0}, PairValue: []uint32{1, 0, 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := ask(""); len(out.GetNeedPrograms()) != 1 || string(out.GetVerdicts()) != "\x00\x00\x00" {
		t.Errorf("unknown: %v", out)
	}
	for _, value := range []string{"2", "2", ""} {
		if out := ask(value); len(out.GetNeedPrograms()) != 0 || string(out.GetVerdicts()) != "\x02\x01\x02" {
			t.Errorf("%q: %v", value, out)
		}
	}
	if n := compiled.Load(); n != 1 {
		t.Errorf("compiled %d times", n)
	}
}

func TestAValueThatDoesNotFitTheSchemaNeverReachesTheAuthor(t *testing.T) {
	t.Parallel()
	c, compiled, _ := court(t, sdk.Operator{ID: "judge/same", ValueSchema: []byte(
		`{"type":"object","properties":{"km":{"type":"number","minimum":0}},"required":["km"],"additionalProperties":false}`)})
	values := []string{`{"km":1}`, `{"km":-1}`, `{}`, `"none"`, `{`}
	req := &matchv1.CompileRequest{InstanceId: "a"}
	for _, v := range values {
		req.Programs = append(req.Programs, &matchv1.Program{OperatorId: "judge/same", ValueJson: []byte(v)})
	}
	req.Programs = append(req.Programs, &matchv1.Program{OperatorId: "judge/other", ValueJson: []byte(`1`)})
	out, err := c.Compile(t.Context(), req)
	if err != nil || len(out.GetResults()) != 6 {
		t.Fatal(out, err)
	}
	for i, pointer := range []string{"-", "/km", "", "", "", ""} {
		r := out.GetResults()[i]
		if r.GetCompiled() != (pointer == "-") || !r.GetCompiled() && r.GetDiagnostics()[0].GetPointer() != pointer {
			t.Errorf("%d: %v", i, r)
		}
	}
	if n := compiled.Load(); n != 1 {
		t.Errorf("%d values reached the author", n)
	}
}

func TestOperatorsThatAreNotWellFormedKeepTheMatcherFromOpening(t *testing.T) {
	t.Parallel()
	for name, operators := range map[string][]sdk.Operator{
		"no slash":       {{ID: "same"}},
		"capitals":       {{ID: "Judge/same"}},
		"twice":          {{ID: "judge/same"}, {ID: "judge/same"}},
		"schema":         {{ID: "judge/same", ValueSchema: []byte(`{`)}},
		"schema by name": {{ID: "judge/same", ValueSchema: []byte(`{"$ref":"file:///etc/passwd"}`)}},
	} {
		if _, _, opened := court(t, operators...); opened.GetOpened() || opened.GetError().GetCode() != "operator" {
			t.Errorf("%s: %v", name, opened)
		}
	}
	c, _, _ := court(t, sdk.Operator{ID: "judge/same"})
	out, err := c.Compile(t.Context(), &matchv1.CompileRequest{InstanceId: "a", Programs: []*matchv1.Program{{OperatorId: "judge/same", ValueJson: []byte(`"none"`)}}})
	if err != nil || out.GetResults()[0].GetCompiled() {
		t.Errorf("no program: %v %v", out, err)
	}
	for _, req := range []*matchv1.MatchBatchRequest{
		{InstanceId: "a", PairProgram: []uint32{0}},
		{InstanceId: "a", PairProgram: []uint32{0}, PairValue: []uint32{0}},
		{InstanceId: "a", PairProgram: []uint32{0}, PairValue: []uint32{0}, Programs: []*matchv1.Program{{}}},
	} {
		if _, err := c.MatchBatch(t.Context(), req); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", req, err)
		}
	}
}

func TestTheMatcherOfTheExampleDoesWhatItsExamplesSay(t *testing.T) {
	t.Parallel()
	for _, o := range (age{}).Operators() {
		for _, e := range o.Examples {
			p, err := age{}.Compile(o.ID, e.Value)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Match(&sdk.Input{Value: e.Property, Now: e.Now}); got != e.Result {
				t.Errorf("%s: %s", e.Value, got)
			}
		}
	}
}

// archive is a sink that answers questions.
type archive struct{ counter }

func (*archive) DescribeQuery(context.Context) (sdk.QueryCapabilities, error) {
	return sdk.QueryCapabilities{Fields: []string{"event"}, Operators: []string{"exact"}, People: true}, nil
}

func (*archive) CountAction(_ context.Context, q *sdk.ActionQuery, bucket time.Duration) (sdk.CountResult, error) {
	if len(q.Steps[0].AllOf) > 0 {
		return sdk.CountResult{Unsupported: q.Steps[0].AllOf}, nil
	}
	return sdk.CountResult{Matched: 3, Buckets: []sdk.QueryBucket{{Start: q.From, Count: 3}}, AsOfSeq: 9}, nil
}

func (*archive) PeopleOfAction(ctx context.Context, _ *sdk.ActionQuery, limit int, cursor []byte, page func(sdk.PeoplePage) error) error {
	for i := range limit {
		p := sdk.PeoplePage{People: []sdk.QueryPerson{{DistinctID: fmt.Sprint(string(cursor), i), Count: 1}}, Cursor: fmt.Append(nil, i)}
		if err := page(p); err != nil {
			return err
		}
	}
	return nil
}

func TestASinkAnswersQuestions(t *testing.T) {
	t.Parallel()
	for _, answers := range []bool{true, false} {
		conn := sdk.Dial(t, sdk.Plugin{Name: "archive", Version: "1.0.0", Sink: func() sdk.Sink {
			a := &archive{}
			a.cfg.Limit = 1
			if answers {
				return a
			}
			return &a.counter
		}})
		configure(t, pluginv1.NewPluginServiceClient(conn), "a", 1, `{}`)
		if out, err := sinkv1.NewSinkServiceClient(conn).Open(t.Context(), &sinkv1.OpenRequest{InstanceId: "a"}); err != nil || !out.GetOpened() {
			t.Fatal(out, err)
		}
		q := queryv1alpha1.NewSinkQueryServiceClient(conn)
		described, err := q.DescribeQuery(t.Context(), &queryv1alpha1.DescribeQueryRequest{InstanceId: "a"})
		if err != nil || described.GetDescribed() != answers || !answers && described.GetError().GetClass() != pluginv1.Error_CLASS_UNSUPPORTED {
			t.Errorf("%v %v", described, err)
		}
		if !answers {
			continue
		}
		step := &queryv1alpha1.Step{Event: "e"}
		query := &queryv1alpha1.ActionQuery{Steps: []*queryv1alpha1.Step{step}}
		count, err := q.CountAction(t.Context(), &queryv1alpha1.CountActionRequest{InstanceId: "a", Query: query})
		if err != nil || !count.GetCounted() || count.GetMatched() != 3 || len(count.GetBuckets()) != 1 {
			t.Errorf("%v %v", count, err)
		}
		stream, err := q.PeopleOfAction(t.Context(), &queryv1alpha1.PeopleOfActionRequest{InstanceId: "a", Query: query, Limit: 3, Cursor: []byte("c")})
		if err != nil {
			t.Fatal(err)
		}
		var people []string
		for {
			page, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range page.GetPeople() {
				people = append(people, p.GetDistinctId())
			}
			if page.GetComplete() {
				break
			}
		}
		if !slices.Equal(people, []string{"c0", "c1", "c2"}) {
			t.Errorf("%v", people)
		}
		step.AllOf = []*queryv1alpha1.Predicate{{Field: "moon", Operator: "exact"}}
		count, err = q.CountAction(t.Context(), &queryv1alpha1.CountActionRequest{InstanceId: "a", Query: query})
		if err != nil || count.GetCounted() || count.GetUnsupported()[0].GetField() != "moon" {
			t.Errorf("%v %v", count, err)
		}
	}
}

// FuzzMatchBatch: whatever a host sends, the answer has a verdict for each pair
// or is a refusal, and the process lives on.
func FuzzMatchBatch(f *testing.F) {
	for _, req := range []*matchv1.MatchBatchRequest{
		{},
		{Programs: []*matchv1.Program{{OperatorId: "judge/same", ValueJson: []byte(`1`)}}, Values: [][]byte{[]byte(`1`), nil}, PairProgram: []uint32{0, 0}, PairValue: []uint32{0, 1}},
		{PairProgram: []uint32{1 << 31}, PairValue: []uint32{7}},
	} {
		text, err := proto.Marshal(req)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	c, _, _ := court(f, sdk.Operator{ID: "judge/same", ValueSchema: []byte(`{"type": ["string", "number"]}`)})
	f.Fuzz(func(t *testing.T, text []byte) {
		var req matchv1.MatchBatchRequest
		if proto.Unmarshal(text, &req) != nil {
			return
		}
		req.InstanceId = "a"
		for _, p := range req.GetPrograms() {
			p.OperatorId = strings.ToValidUTF8(p.GetOperatorId(), "")
		}
		out, err := c.MatchBatch(context.Background(), &req)
		if err == nil && out.GetError() == nil && len(out.GetVerdicts()) != len(req.GetPairProgram()) || err != nil && status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v %v", out, err)
		}
	})
}

// FuzzNotify: whatever a host sends, there is a result for each item.
func FuzzNotify(f *testing.F) {
	for _, req := range []*notifyv1.NotifyRequest{letters("a", "a"), {Items: []*notifyv1.Notification{{EventJson: []byte(`{"timestamp":7}`)}, {Segments: []*notifyv1.Segment{{Kind: 99}}}}}} {
		text, err := proto.Marshal(req)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	c, _ := loft(f, `{"flight": 2}`, func(_ context.Context, n *sdk.Notification) (sdk.NotifyResult, error) {
		return n.Delivered(n.Render(func(s sdk.Segment) string { return s.Kind.String() })), nil
	})
	f.Fuzz(func(t *testing.T, text []byte) {
		var req notifyv1.NotifyRequest
		if proto.Unmarshal(text, &req) != nil {
			return
		}
		req.InstanceId = "a"
		out, err := c.Notify(context.Background(), &req)
		if err != nil || len(out.GetResults()) != len(req.GetItems()) {
			t.Fatalf("%v %v", out, err)
		}
		for _, r := range out.GetResults() {
			if r.GetOutcome() == notifyv1.NotifyResult_OUTCOME_UNSPECIFIED {
				t.Errorf("%v", r)
			}
		}
	})
}
