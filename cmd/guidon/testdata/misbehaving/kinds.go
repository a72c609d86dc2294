package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

type sink struct {
	sinkv1.UnimplementedSinkServiceServer
}

func (sink) Open(context.Context, *sinkv1.OpenRequest) (*sinkv1.OpenResponse, error) {
	out := &sinkv1.OpenResponse{Opened: true, Properties: &sinkv1.SinkProperties{MaxInFlight: 1, Ordering: sinkv1.SinkProperties_ORDERING_TOTAL}}
	switch mode {
	case "open_absurd":
		out = &sinkv1.OpenResponse{Error: absurd()}
	case "open_neither":
		out = &sinkv1.OpenResponse{}
	case "open_numbers":
		out.Properties = &sinkv1.SinkProperties{
			MaxInFlight: math.MaxUint32, MaxEvents: random.Uint32(), MaxBytes: random.Uint64(), MaxStagedEvents: math.MaxUint64, MaxStagedBytes: 1,
			Linger: durationpb.New(-time.Hour), MaxStagedAge: durationpb.New(math.MaxInt64), Ordering: 99, Dedup: 99, Commit: 99, Durability: 99,
			Accepts: []string{"\x00", ""}, Features: []string{"time_travel"},
		}
	}
	return out, fail("open")
}

func (sink) WriteBatch(_ context.Context, req *sinkv1.WriteBatchRequest) (*sinkv1.WriteBatchResponse, error) {
	out := &sinkv1.WriteBatchResponse{Outcome: sinkv1.WriteBatchResponse_OUTCOME_COMMITTED, CommittedThrough: req.GetLastSeq()}
	rejected := sinkv1.WriteBatchResponse_OUTCOME_REJECTED
	switch mode {
	case "write_outcome":
		out.Outcome = sinkv1.WriteBatchResponse_Outcome(random.Int32())
	case "write_empty":
		out = &sinkv1.WriteBatchResponse{}
	case "write_ahead":
		out.CommittedThrough = math.MaxUint64 - random.Uint64N(1000)
	case "write_behind":
		out.CommittedThrough = 1
	case "write_indexes":
		out.Outcome = sinkv1.WriteBatchResponse_OUTCOME_PARTIAL
		for range 10 {
			out.Failures = append(out.Failures, &sinkv1.RecordFailure{Index: random.Uint32(), Error: absurd()})
		}
	case "write_absurd":
		out = &sinkv1.WriteBatchResponse{Outcome: rejected, Error: absurd()}
	case "write_huge":
		out.Outcome, out.Error = rejected, &pluginv1.Error{Message: huge}
	case "write_staged": // never flushed
		out.Outcome, out.StagedEvents, out.StagedBytes = sinkv1.WriteBatchResponse_OUTCOME_STAGED, math.MaxUint64, math.MaxUint64
	case "write_throttled":
		out = &sinkv1.WriteBatchResponse{Outcome: rejected, Error: &pluginv1.Error{
			Class: pluginv1.Error_CLASS_THROTTLED, Code: "later", Message: "in ten years", RetryAfter: durationpb.New(87600 * time.Hour),
		}}
	case "write_slow":
		time.Sleep(100 * time.Millisecond)
	case "write_poison":
		for _, event := range req.GetRecords().GetJson() {
			if bytes.Contains(event, []byte(`"poison"`)) {
				os.Exit(3)
			}
		}
	}
	return out, fail("write")
}

func (sink) Flush(_ context.Context, req *sinkv1.FlushRequest) (*sinkv1.FlushResponse, error) {
	if mode == "write_staged" {
		return &sinkv1.FlushResponse{}, nil
	}
	return &sinkv1.FlushResponse{Flushed: true, CommittedThrough: req.GetUpToSeq()}, nil
}

type notifier struct {
	notifyv1.UnimplementedNotifierServiceServer
}

func (notifier) Open(context.Context, *notifyv1.OpenRequest) (*notifyv1.OpenResponse, error) {
	switch mode {
	case "open_absurd":
		return &notifyv1.OpenResponse{Error: absurd()}, nil
	case "open_neither":
		return &notifyv1.OpenResponse{}, nil
	}
	return &notifyv1.OpenResponse{Opened: true, Properties: &notifyv1.NotifierProperties{MaxItems: 1, MaxInFlight: 1}}, fail("open")
}

type matcher struct {
	matchv1.UnimplementedMatcherServiceServer
}

func (matcher) Open(context.Context, *matchv1.OpenRequest) (*matchv1.OpenResponse, error) {
	switch mode {
	case "open_absurd":
		return &matchv1.OpenResponse{Error: absurd()}, nil
	case "open_neither":
		return &matchv1.OpenResponse{}, nil
	}
	return &matchv1.OpenResponse{Opened: true, Properties: &matchv1.MatcherProperties{MaxInFlight: 4}}, fail("open")
}

func (matcher) Describe(context.Context, *matchv1.DescribeRequest) (*matchv1.DescribeResponse, error) {
	operator := &matchv1.Operator{Id: "misbehaving/any", Version: "1", Purity: matchv1.Operator_PURITY_VOLATILE}
	return &matchv1.DescribeResponse{Described: true, Operators: []*matchv1.Operator{operator}}, fail("describe")
}

func (matcher) Compile(_ context.Context, req *matchv1.CompileRequest) (*matchv1.CompileResponse, error) {
	out := &matchv1.CompileResponse{}
	for range req.GetPrograms() {
		out.Results = append(out.Results, &matchv1.CompileResult{Compiled: true})
	}
	return out, fail("compile")
}

func (matcher) MatchBatch(_ context.Context, req *matchv1.MatchBatchRequest) (*matchv1.MatchBatchResponse, error) {
	out := &matchv1.MatchBatchResponse{Verdicts: bytes.Repeat([]byte{byte(matchv1.Verdict_VERDICT_MATCH)}, len(req.GetPairProgram()))}
	switch mode {
	case "match_length":
		out.Verdicts = make([]byte, random.IntN(1000))
	case "match_verdict":
		for i := range out.GetVerdicts() {
			out.Verdicts[i] = byte(random.Uint32())
		}
	case "match_needs":
		out.NeedPrograms = []uint32{0, random.Uint32()}
	case "match_huge":
		out.Verdicts = []byte(huge)
	case "match_slow":
		time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
	}
	return out, fail("match")
}
