package sdk

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/guidonhq/guidon/sdk/pb/matchv1"
)

const (
	// pairsBetweenLooks is the number of pairs between two checks of the
	// deadline; fewer where that takes longer than timeBetweenLooks.
	pairsBetweenLooks = 64
	timeBetweenLooks  = 200 * time.Microsecond
	// maxPairErrors bounds the errors of one answer.
	maxPairErrors = 100
)

// matcherServer implements the protocol's matcher service.
type matcherServer struct {
	matchv1.UnimplementedMatcherServiceServer
	*server
}

// Open loads an instance.
func (s *matcherServer) Open(ctx context.Context, req *matchv1.OpenRequest) (*matchv1.OpenResponse, error) {
	in := s.instance(req.GetInstanceId())
	if in == nil {
		return &matchv1.OpenResponse{Error: errorToProto(unknownInstance(req.GetInstanceId()))}, nil
	}
	ctx = in.context(ctx)
	var p MatcherProperties
	err := openAs(ctx, in, func(v *matcherValue) (_ int, err error) {
		p, err = v.Open(ctx, OpenRequest{Instance: in.id})
		if p.MaxInFlight <= 0 {
			p.MaxInFlight = runtime.GOMAXPROCS(0)
		}
		if err == nil {
			err = v.learn()
		}
		return p.MaxInFlight, err
	})
	if err != nil {
		return &matchv1.OpenResponse{Error: errorToProto(AsError(err))}, nil
	}
	return &matchv1.OpenResponse{Opened: true, Properties: &matchv1.MatcherProperties{MaxInFlight: uint32(p.MaxInFlight)}}, nil
}

// Describe lists the operators.
func (s *matcherServer) Describe(_ context.Context, req *matchv1.DescribeRequest) (*matchv1.DescribeResponse, error) {
	in := s.instance(req.GetInstanceId())
	if in == nil {
		return &matchv1.DescribeResponse{Error: errorToProto(unknownInstance(req.GetInstanceId()))}, nil
	}
	out := &matchv1.DescribeResponse{}
	err := with(in, func(v *matcherValue) error {
		for _, o := range v.operators {
			out.Operators = append(out.Operators, operatorToProto(o))
		}
		out.DataVersion = v.dataVersion()
		return nil
	})
	if err != nil {
		return &matchv1.DescribeResponse{Error: errorToProto(AsError(err))}, nil
	}
	out.Described = true
	return out, nil
}

// dataVersion returns the version of a matcher's data, "" without data.
func (v *matcherValue) dataVersion() string {
	if d, ok := v.Matcher.(DataVersioner); ok {
		return d.DataVersion()
	}
	return ""
}

// Compile checks filter values; those that are right are kept for MatchBatch.
func (s *matcherServer) Compile(ctx context.Context, req *matchv1.CompileRequest) (*matchv1.CompileResponse, error) {
	in := s.instance(req.GetInstanceId())
	if in == nil {
		return &matchv1.CompileResponse{Error: errorToProto(unknownInstance(req.GetInstanceId()))}, nil
	}
	out := &matchv1.CompileResponse{}
	err := work(ctx, in, func(v *matcherValue) error {
		for _, p := range req.GetPrograms() {
			if err := ctx.Err(); err != nil {
				return err
			}
			program, err := v.compile(in.log, p)
			if err = cmp.Or(err, checkOptional(program, reflect.TypeFor[Reader]())); err != nil {
				out.Results = append(out.Results, &matchv1.CompileResult{Diagnostics: diagnosticsOf(err)})
				continue
			}
			if len(p.GetProgramId()) > 0 {
				v.keep(&compiled{id: string(p.GetProgramId()), program: program})
			}
			out.Results = append(out.Results, &matchv1.CompileResult{
				Compiled: true, Reads: readsOf(program), CostNs: uint64(max(0, v.byID[p.GetOperatorId()].Cost)),
			})
		}
		return nil
	})
	if err != nil {
		return &matchv1.CompileResponse{Error: errorToProto(AsError(err))}, nil
	}
	return out, nil
}

func readsOf(p Program) []string {
	if r, ok := p.(Reader); ok {
		return r.Reads()
	}
	return nil
}

// MatchBatch evaluates the pairs in order until the deadline; the remaining ones stay
// unknown.
func (s *matcherServer) MatchBatch(ctx context.Context, req *matchv1.MatchBatchRequest) (*matchv1.MatchBatchResponse, error) {
	if err := columns(req); err != nil {
		return nil, err
	}
	if !s.begin() {
		return &matchv1.MatchBatchResponse{Error: errorToProto(draining())}, nil
	}
	defer s.end()
	in := s.instance(req.GetInstanceId())
	if in == nil {
		return &matchv1.MatchBatchResponse{Error: errorToProto(unknownInstance(req.GetInstanceId()))}, nil
	}
	ctx, cancel := sooner(ctx)
	defer cancel()
	b := &pairBatch{in: in, req: req, out: &matchv1.MatchBatchResponse{Verdicts: make([]byte, len(req.GetPairProgram()))}}
	err := work(ctx, in, func(v *matcherValue) error {
		b.out.DataVersion = v.dataVersion()
		b.prepare(ctx, v)
		for from := 0; from < len(b.out.Verdicts); {
			from = b.judge(ctx, from)
		}
		return nil
	})
	if err != nil {
		return &matchv1.MatchBatchResponse{Error: errorToProto(AsError(err))}, nil
	}
	return b.out, nil
}

// columns finds a host's mistakes.
func columns(req *matchv1.MatchBatchRequest) error {
	if len(req.GetPairProgram()) != len(req.GetPairValue()) {
		return status.Error(codes.InvalidArgument, "columns of different lengths")
	}
	for i := range req.GetPairProgram() {
		if int(req.PairProgram[i]) >= len(req.GetPrograms()) || int(req.PairValue[i]) >= len(req.GetValues()) {
			return status.Error(codes.InvalidArgument, "index out of range")
		}
	}
	return nil
}

// pairBatch is a request being answered.
type pairBatch struct {
	in       *instance
	req      *matchv1.MatchBatchRequest
	out      *matchv1.MatchBatchResponse
	programs []*compiled // nil where the value is needed, or time was short
	told     []bool      // programs whose error was reported
}

// prepare finds or compiles the programs.
func (b *pairBatch) prepare(ctx context.Context, v *matcherValue) {
	b.programs = make([]*compiled, len(b.req.GetPrograms()))
	b.told = make([]bool, len(b.programs))
	for i, p := range b.req.GetPrograms() {
		if ctx.Err() != nil {
			return
		}
		if b.programs[i] = v.program(b.in.log, p); b.programs[i] == nil {
			b.out.NeedPrograms = append(b.out.NeedPrograms, uint32(i))
		}
	}
}

// judge evaluates pairs from the given one on, until the deadline or a panic, and
// returns the next pair. A panic fails the pair in which it happened.
func (b *pairBatch) judge(ctx context.Context, from int) (next int) {
	i := from
	defer func() {
		if r := recover(); r != nil {
			b.in.log.Error("panic", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			b.failed(i, &Error{Class: ClassInternal, Code: "panic", Message: fmt.Sprint(r), Source: SourcePlugin})
			next = i + 1
		}
	}()
	input := &Input{Now: time.UnixMicro(b.req.GetNowUs()).UTC()}
	looked, stride, left := time.Now(), pairsBetweenLooks, 0
	for ; i < len(b.out.Verdicts); i++ {
		if left--; left < 0 {
			if ctx.Err() != nil {
				return len(b.out.Verdicts)
			}
			now := time.Now()
			if now.Sub(looked) > timeBetweenLooks {
				stride = max(1, stride/4)
			} else {
				stride = min(2*stride, pairsBetweenLooks)
			}
			looked, left = now, stride-1
		}
		c := b.programs[b.req.PairProgram[i]]
		switch {
		case c == nil:
			continue
		case c.err != nil:
			b.failed(i, c.err)
			continue
		}
		input.Value, input.err = b.req.Values[b.req.PairValue[i]], nil
		switch verdict := c.program.Match(input); verdict {
		case NoMatch, Match:
			b.out.Verdicts[i] = byte(verdict)
		case Failed:
			b.failed(i, input.err)
		default: // not an answer
		}
	}
	return i
}

// failed records a failed pair, with the reason once for each program.
func (b *pairBatch) failed(i int, err *Error) {
	b.out.Verdicts[i] = byte(Failed)
	program := b.req.PairProgram[i]
	if err == nil || b.told[program] || len(b.out.Errors) >= maxPairErrors {
		return
	}
	b.told[program] = true
	b.out.Errors = append(b.out.Errors, &matchv1.PairError{Pair: uint32(i), Error: errorToProto(err)})
}

func operatorToProto(o Operator) *matchv1.Operator {
	out := &matchv1.Operator{
		Id: o.ID, Version: o.Version, Label: o.Label, Doc: o.Doc, ValueSchema: o.ValueSchema, PropertyTypes: o.PropertyTypes,
		Missing: matchv1.Operator_Missing(o.Missing + 1), Purity: matchv1.Operator_Purity(o.Purity + 1),
		CacheTtl: durationpb.New(max(0, o.CacheTTL)), CostNs: uint64(max(0, o.Cost)), EquivalentCel: o.CEL,
	}
	for _, e := range o.Examples {
		example := &matchv1.Example{ValueJson: e.Value, PropertyJson: e.Property, Result: matchv1.Verdict(e.Result)}
		if !e.Now.IsZero() {
			example.NowUs = e.Now.UnixMicro()
		}
		out.Examples = append(out.Examples, example)
	}
	return out
}
