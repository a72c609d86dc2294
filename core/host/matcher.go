package host

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/host/conn"
	"github.com/guidonhq/guidon/core/host/metrics"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/matchv1"
)

// MatcherInstance is a configured matcher. It exists before its process and stays while
// processes come and go. Its methods are safe for concurrent use.
type MatcherInstance struct {
	*instance

	mu          sync.Mutex
	properties  sdk.MatcherProperties
	operators   []sdk.Operator
	dataVersion string
	described   uint64              // counts openings
	session     *conn.Session       // of known
	known       *wire.KnownPrograms // the programs that session has
}

var _ kindHandler = (*MatcherInstance)(nil)

func newMatcherInstance(i *instance) *MatcherInstance {
	return &MatcherInstance{instance: i, properties: sdk.MatcherProperties{MaxInFlight: 1}, known: &wire.KnownPrograms{}}
}

// Use returns the name or path of the plugin in the configuration.
func (i *MatcherInstance) Use() string {
	return i.target.settings().Use
}

// Properties returns the properties that the matcher reported when it was last opened,
// within the limits of the host, and the weakest ones before that.
func (i *MatcherInstance) Properties() sdk.MatcherProperties {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.properties
}

// Operators returns the operators of the last opening, also while the matcher is not
// running; none before the first. The caller must not change the slice. version
// grows with each opening.
func (i *MatcherInstance) Operators() (operators []sdk.Operator, version uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.operators, i.described
}

// Operator returns one of the operators.
func (i *MatcherInstance) Operator(id string) (sdk.Operator, bool) {
	operators, _ := i.Operators()
	at := slices.IndexFunc(operators, func(o sdk.Operator) bool { return o.ID == id })
	if at < 0 {
		return sdk.Operator{}, false
	}
	return operators[at], true
}

// DataVersion returns the version of the data of DataDependent operators, as the plugin
// last reported it.
func (i *MatcherInstance) DataVersion() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.dataVersion
}

// Compile checks filter values and returns the result for each, in the same order. The
// error is always a *sdk.Error and means that the call failed.
func (i *MatcherInstance) Compile(ctx context.Context, programs []wire.MatchProgram) ([]wire.Compiled, error) {
	s := i.gate.Enter()
	if s == nil {
		return nil, wire.Unavailable("the plugin is not running")
	}
	defer s.InFlight.Done()
	req := &matchv1.CompileRequest{InstanceId: i.name}
	for _, p := range programs {
		req.Programs = append(req.Programs, p.ToProto(true))
	}
	var out *matchv1.CompileResponse
	err := s.Call(ctx, "compile", s.Timeouts.Call, func(ctx context.Context) (_ string, err error) {
		out, err = matchv1.NewMatcherServiceClient(s.GRPC).Compile(ctx, req)
		return metrics.Outcome(out.GetError() == nil), err
	})
	if err := i.resultOf(ctx, s, err); err != nil {
		return nil, err
	}
	if refused := wire.ErrorFromProto(out.GetError(), s.Redactor); refused != nil {
		i.handleInstanceError(s, refused)
		return nil, refused
	}
	results, violation := wire.CompiledFromProto(out, len(programs), s.Redactor)
	if violation != nil {
		return nil, i.rejectAnswer(violation)
	}
	for k, r := range results {
		if r.OK {
			i.knownPrograms(s).Add(programs[k].ID)
		}
	}
	return results, nil
}

// MatchBatch returns a verdict for each pair, at the end of ctx at the latest. Pairs
// that the plugin did not evaluate in time are Unknown; after an error, always a
// *sdk.Error, all are.
func (i *MatcherInstance) MatchBatch(ctx context.Context, b *wire.MatchBatch) (*wire.MatchAnswer, error) {
	s := i.gate.Enter()
	if s == nil {
		return nil, wire.Unavailable("the plugin is not running")
	}
	defer s.InFlight.Done()
	answer, needed, err := i.matchOnce(ctx, s, b)
	if err != nil {
		return nil, err
	}
	if len(needed) == 0 {
		return answer, nil
	}
	// The plugin lacks programs: send their pairs once more, with the values.
	i.knownPrograms(s).Remove(b.Programs, needed)
	part, at := b.OnlyPrograms(needed)
	more, needed, err := i.matchOnce(ctx, s, part)
	if err != nil {
		return answer, nil // without the missing pairs
	}
	if len(needed) > 0 {
		_ = i.rejectAnswer(&wire.ContractViolation{Kind: "program_needed_twice", Detail: "a program was asked for that had just been sent"})
	}
	answer.Merge(more, at)
	return answer, nil
}

// matchOnce makes one call. It returns the programs whose value the plugin requests.
func (i *MatcherInstance) matchOnce(ctx context.Context, s *conn.Session, b *wire.MatchBatch) (*wire.MatchAnswer, []uint32, *sdk.Error) {
	known := i.knownPrograms(s)
	req := b.ToProto(i.name, known)
	var out *matchv1.MatchBatchResponse
	err := s.Call(ctx, "match_batch", s.Timeouts.Call, func(ctx context.Context) (_ string, err error) {
		out, err = matchv1.NewMatcherServiceClient(s.GRPC).MatchBatch(ctx, req)
		return metrics.Outcome(out.GetError() == nil && len(out.GetVerdicts()) == len(b.Pairs)), err
	})
	if err := i.resultOf(ctx, s, err); err != nil {
		i.recordFailure(ctx, err)
		return nil, nil, err
	}
	if refused := wire.ErrorFromProto(out.GetError(), s.Redactor); refused != nil {
		i.recordFailure(ctx, refused)
		i.handleInstanceError(s, refused)
		return nil, nil, refused
	}
	answer, violation := wire.MatchAnswerFromProto(out, b, s.Redactor)
	if violation != nil {
		unknown := i.rejectAnswer(violation)
		if answer == nil {
			return nil, nil, unknown
		}
	}
	i.recordProgress()
	known.AddExcept(b.Programs, out.GetNeedPrograms())
	i.mu.Lock()
	i.dataVersion = answer.DataVersion
	i.mu.Unlock()
	return answer, out.GetNeedPrograms(), nil
}

// resultOf returns the caller's error of a call, nil for an answered one. Matchers
// change nothing, so refused and unknown mean the same.
func (i *MatcherInstance) resultOf(ctx context.Context, s *conn.Session, err error) *sdk.Error {
	if err == nil {
		s.RecordAnswer()
		return nil
	}
	return i.anyCallError(ctx, s, err)
}

// knownPrograms returns the programs that a session has; a new session has none.
func (i *MatcherInstance) knownPrograms(s *conn.Session) *wire.KnownPrograms {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.session != s {
		i.session, i.known = s, &wire.KnownPrograms{}
	}
	return i.known
}

// open opens a session and loads its operators, which stay the same until the next
// opening.
func (i *MatcherInstance) open(ctx context.Context, s *conn.Session) (*openResult, *sdk.Error, error) {
	client := matchv1.NewMatcherServiceClient(s.GRPC)
	var out *matchv1.OpenResponse
	err := s.Call(ctx, "open", s.Timeouts.Open, func(ctx context.Context) (_ string, err error) {
		out, err = client.Open(ctx, &matchv1.OpenRequest{InstanceId: i.name})
		return metrics.Outcome(out.GetOpened()), err
	})
	if err != nil || !out.GetOpened() || out.GetProperties() == nil {
		return nil, wire.ErrorFromProto(out.GetError(), s.Redactor), err
	}
	var described *matchv1.DescribeResponse
	err = s.Call(ctx, "describe", s.Timeouts.Open, func(ctx context.Context) (_ string, err error) {
		described, err = client.Describe(ctx, &matchv1.DescribeRequest{InstanceId: i.name})
		return metrics.Outcome(described.GetDescribed()), err
	})
	if err != nil || !described.GetDescribed() {
		return nil, wire.ErrorFromProto(described.GetError(), s.Redactor), err
	}
	operators, problems := wire.OperatorsFromProto(described.GetOperators())
	for _, problem := range problems {
		i.metrics.ContractViolations.WithLabelValues(i.name, "bad_operator").Inc()
		i.log.Warn("plugin operator unusable", zap.String("problem", problem))
	}
	if len(operators) == 0 {
		return nil, wire.NewError(sdk.ClassInternal, "no_operators", "the matcher offers no operator that can be used"), nil
	}
	before, _ := i.Operators()
	return &openResult{
		compatible: sameOperators(before, operators),
		commit: func() {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.properties = wire.MatcherPropertiesFromProto(out.GetProperties())
			i.operators, i.dataVersion = operators, wire.DataVersion(described.GetDataVersion())
			i.described++
		},
	}, nil, nil
}

// sameOperators reports whether filter values mean the same to both.
func sameOperators(a, b []sdk.Operator) bool {
	return slices.EqualFunc(a, b, func(a, b sdk.Operator) bool { return a.ID == b.ID && a.Version == b.Version })
}

func (i *MatcherInstance) handOver(context.Context, *conn.Session) {}

func (i *MatcherInstance) onEnd(*conn.Session) {}

// ErrUnknownOperator reports an operator that no matcher has.
var ErrUnknownOperator = errors.New("no matcher offers this operator")

// Program returns the program of a filter value for an operator of this matcher.
func (i *MatcherInstance) Program(operator string, value json.RawMessage) (wire.MatchProgram, error) {
	o, ok := i.Operator(operator)
	if !ok {
		return wire.MatchProgram{}, ErrUnknownOperator
	}
	return wire.NewMatchProgram(o, value)
}
