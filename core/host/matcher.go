package host

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/matchv1"
)

// MatcherInstance is a configured matcher as the rest of the server sees it: it
// is there before the process is and stays while processes come and go. Its
// methods may be called from many goroutines.
type MatcherInstance struct {
	name string
	sup  *supervisor
	gate *gate

	mu          sync.Mutex
	properties  sdk.MatcherProperties
	operators   []sdk.Operator
	dataVersion string
	described   uint64
	known       *knownPrograms
}

var _ face = (*MatcherInstance)(nil)

func newMatcherInstance(name string, sup *supervisor) *MatcherInstance {
	return &MatcherInstance{name: name, sup: sup, gate: sup.gate, properties: sdk.MatcherProperties{MaxInFlight: 1}, known: &knownPrograms{}}
}

// Matchers returns the configured matchers, in the order of the config, whatever
// state they are in.
func (h *Host) Matchers() []*MatcherInstance {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*MatcherInstance
	for _, s := range h.instances {
		if m, ok := s.face.(*MatcherInstance); ok {
			out = append(out, m)
		}
	}
	return out
}

// Name is the instance's name in the config.
func (i *MatcherInstance) Name() string { return i.name }

// Use is the plugin it is of, as the config says.
func (i *MatcherInstance) Use() string {
	i.sup.mu.Lock()
	defer i.sup.mu.Unlock()
	return i.sup.cfg.Use
}

// Properties is how the matcher wants to be fed: what it said when it was last
// opened, within what the host allows, and the weakest choice before that.
func (i *MatcherInstance) Properties() sdk.MatcherProperties {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.properties
}

// Ready blocks until the matcher can be asked, or ctx ends.
func (i *MatcherInstance) Ready(ctx context.Context) error { return i.gate.wait(ctx) }

// Available reports whether the matcher can be asked now.
func (i *MatcherInstance) Available() bool { return i.gate.current() != nil }

// Operators returns what the matcher offered when it was last opened, also while
// it is not running; none before it was opened once. The slice is the caller's to
// read only. version grows with each opening.
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

// DataVersion names the data that operators of purity DataDependent look at, as
// the plugin last said.
func (i *MatcherInstance) DataVersion() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.dataVersion
}

// Compile asks the plugin whether filter values make sense and returns what it
// says of each, in the same order. The error, always a *sdk.Error, says that the
// plugin could not be asked.
func (i *MatcherInstance) Compile(ctx context.Context, programs []MatchProgram) ([]Compiled, error) {
	s := i.gate.enter()
	if s == nil {
		return nil, unavailable("the plugin is not running")
	}
	defer s.busy.leave()
	req := &matchv1.CompileRequest{InstanceId: i.name}
	for _, p := range programs {
		req.Programs = append(req.Programs, p.proto(true))
	}
	var out *matchv1.CompileResponse
	err := s.call(ctx, "compile", s.timeouts.Call, func(ctx context.Context) (_ string, err error) {
		out, err = matchv1.NewMatcherServiceClient(s.conn).Compile(ctx, req)
		return accepted(out.GetError() == nil), err
	})
	if err := i.answered(ctx, s, err); err != nil {
		return nil, err
	}
	if refused := errorFromProto(out.GetError(), s.scrub); refused != nil {
		i.sup.heed(s, refused)
		return nil, refused
	}
	results, broken := compiledFromProto(out, len(programs), s.scrub)
	if broken != nil {
		return nil, i.sup.disbelieve(broken)
	}
	for k, r := range results {
		if r.OK {
			i.knows(s).add(programs[k].ID)
		}
	}
	return results, nil
}

// MatchBatch asks the plugin for a verdict on each pair. It returns at the end of
// ctx at the latest. Pairs that the plugin did not get to are Unknown. With an
// error, always a *sdk.Error, they all are.
func (i *MatcherInstance) MatchBatch(ctx context.Context, b *MatchBatch) (*MatchAnswer, error) {
	s := i.gate.enter()
	if s == nil {
		return nil, unavailable("the plugin is not running")
	}
	defer s.busy.leave()
	answer, needed, err := i.match(ctx, s, b)
	if err != nil {
		return nil, err
	}
	if len(needed) == 0 {
		return answer, nil
	}
	// The plugin has forgotten programs, or never knew them: their pairs again,
	// once, with the values.
	i.knows(s).drop(b.Programs, needed)
	again, at := b.only(needed)
	more, needed, err := i.match(ctx, s, again)
	if err != nil {
		return answer, nil // what is known is known
	}
	if len(needed) > 0 {
		_ = i.sup.disbelieve(&breach{"program_needed_twice", "a program was asked for that had just been sent"})
	}
	answer.merge(more, at)
	return answer, nil
}

// match is one call. needed are the programs whose value the plugin asks for.
func (i *MatcherInstance) match(ctx context.Context, s *session, b *MatchBatch) (*MatchAnswer, []uint32, *sdk.Error) {
	known := i.knows(s)
	req := b.proto(i.name, known)
	var out *matchv1.MatchBatchResponse
	err := s.call(ctx, "match_batch", s.timeouts.Call, func(ctx context.Context) (_ string, err error) {
		out, err = matchv1.NewMatcherServiceClient(s.conn).MatchBatch(ctx, req)
		return accepted(out.GetError() == nil && len(out.GetVerdicts()) == len(b.Pairs)), err
	})
	if err := i.answered(ctx, s, err); err != nil {
		return nil, nil, err
	}
	if refused := errorFromProto(out.GetError(), s.scrub); refused != nil {
		i.sup.heed(s, refused)
		return nil, nil, refused
	}
	answer, broken := answerFromProto(out, b, s.scrub)
	if broken != nil {
		unknown := i.sup.disbelieve(broken)
		if answer == nil {
			return nil, nil, unknown
		}
	}
	known.learn(b.Programs, out.GetNeedPrograms())
	i.mu.Lock()
	i.dataVersion = answer.DataVersion
	i.mu.Unlock()
	return answer, out.GetNeedPrograms(), nil
}

// answered turns a failed call into the error of whoever asked. A matcher has no
// outcome to be unsure of: both kinds of failure mean that nothing is known.
func (i *MatcherInstance) answered(ctx context.Context, s *session, err error) *sdk.Error {
	if err == nil {
		s.late.Store(0)
		return nil
	}
	refused, unknown := i.sup.failed(ctx, s, err)
	if refused != nil {
		return refused
	}
	return unknown
}

// knows returns the programs that a session was given; a new session knows none.
func (i *MatcherInstance) knows(s *session) *knownPrograms {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.known.session != s {
		i.known = &knownPrograms{session: s}
	}
	return i.known
}

// open loads a session and asks what it offers: once, it stays the same until the
// next opening.
func (i *MatcherInstance) open(ctx context.Context, s *session) (*opening, *sdk.Error, error) {
	client := matchv1.NewMatcherServiceClient(s.conn)
	var out *matchv1.OpenResponse
	err := s.call(ctx, "open", s.timeouts.Open, func(ctx context.Context) (_ string, err error) {
		out, err = client.Open(ctx, &matchv1.OpenRequest{InstanceId: i.name})
		return accepted(out.GetOpened()), err
	})
	if err != nil || !out.GetOpened() || out.GetProperties() == nil {
		return nil, errorFromProto(out.GetError(), s.scrub), err
	}
	var described *matchv1.DescribeResponse
	err = s.call(ctx, "describe", s.timeouts.Open, func(ctx context.Context) (_ string, err error) {
		described, err = client.Describe(ctx, &matchv1.DescribeRequest{InstanceId: i.name})
		return accepted(described.GetDescribed()), err
	})
	if err != nil || !described.GetDescribed() {
		return nil, errorFromProto(described.GetError(), s.scrub), err
	}
	operators, odd := operatorsFromProto(described.GetOperators())
	for _, problem := range odd {
		i.sup.host.metrics.breaches.WithLabelValues(i.name, "bad_operator").Inc()
		i.sup.log.Warn("an operator of a plugin cannot be used", zap.String("problem", problem))
	}
	if len(operators) == 0 {
		return nil, refusal(sdk.ClassInternal, "no_operators", "the matcher offers no operator that can be used"), nil
	}
	before, _ := i.Operators()
	return &opening{
		alike: sameOperators(before, operators),
		adopt: func() {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.properties = sdk.MatcherProperties{MaxInFlight: min(max(1, int(out.GetProperties().GetMaxInFlight())), maxInFlight)}
			i.operators, i.dataVersion = operators, clip(described.GetDataVersion(), maxDataVersion)
			i.described++
		},
	}, nil, nil
}

// sameOperators reports whether a value means the same to both.
func sameOperators(a, b []sdk.Operator) bool {
	return slices.EqualFunc(a, b, func(a, b sdk.Operator) bool { return a.ID == b.ID && a.Version == b.Version })
}

func (i *MatcherInstance) handOver(context.Context, *session) {}

func (i *MatcherInstance) left(*session) {}

// ErrUnknownOperator says that no matcher offers an operator.
var ErrUnknownOperator = errors.New("no matcher offers this operator")

// Program names the value of a filter for an operator of this matcher.
func (i *MatcherInstance) Program(operator string, value json.RawMessage) (MatchProgram, error) {
	o, ok := i.Operator(operator)
	if !ok {
		return MatchProgram{}, ErrUnknownOperator
	}
	return NewMatchProgram(o, value)
}
