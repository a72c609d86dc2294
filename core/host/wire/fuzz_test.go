package wire_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// FuzzAnswer checks that every answer of a sink is a violation or a valid result.
func FuzzAnswer(f *testing.F) {
	for _, out := range []*sinkv1.WriteBatchResponse{
		{}, {Outcome: 1, CommittedThrough: 3}, {Outcome: 3, CommittedThrough: 3, Failures: []*sinkv1.RecordFailure{{Index: 1}}},
		{Outcome: 4}, {Outcome: 99}, {Outcome: 2, CommittedThrough: 1},
	} {
		encoded, err := proto.Marshal(out)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	b := &sdk.Batch{ID: "b", Attempt: 1, FirstSeq: 1, LastSeq: 3, Records: make([]sdk.Record, 3)}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		var out sinkv1.WriteBatchResponse
		if proto.Unmarshal(encoded, &out) != nil {
			return
		}
		r, err := wire.WriteResultFromProto(&out, b, b.LastSeq, 0, nil)
		if err != nil {
			return
		}
		switch r.Outcome {
		case sdk.Committed:
			if len(r.Failures) > 0 || r.CommittedThrough != b.LastSeq {
				t.Errorf("%+v", r)
			}
		case sdk.Partial:
			if n := len(r.Failures); n == 0 || n > 3 {
				t.Errorf("%+v", r)
			}
			for _, f := range r.Failures {
				if f.Index < 0 || f.Index > 2 || f.Err == nil || f.Err.Class == sdk.ClassUnspecified || f.Err.RetryAfter < 0 {
					t.Errorf("%+v", f)
				}
			}
		case sdk.Rejected:
			if r.Err == nil || r.Err.Class == sdk.ClassUnspecified {
				t.Errorf("%+v", r)
			}
		case sdk.Staged:
		default:
			t.Errorf("%+v", r)
		}
	})
}

// FuzzMatchAnswer checks that every answer of a matcher has a verdict for each pair or
// is a violation.
func FuzzMatchAnswer(f *testing.F) {
	for _, out := range []*matchv1.MatchBatchResponse{
		{}, {Verdicts: []byte{1, 2, 3}}, {Verdicts: []byte{0, 9, 255}, NeedPrograms: []uint32{0}}, {Verdicts: []byte{3, 3, 3}, Errors: []*matchv1.PairError{{Pair: 7}}},
	} {
		encoded, err := proto.Marshal(out)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	b := &wire.MatchBatch{
		Programs: []wire.MatchProgram{{Operator: "a/b", Value: []byte(`1`)}},
		Values:   []json.RawMessage{[]byte(`1`), []byte(`2`), []byte(`3`)},
		Pairs:    []wire.MatchPair{{Value: 0}, {Value: 1}, {Value: 2}},
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		var out matchv1.MatchBatchResponse
		if proto.Unmarshal(encoded, &out) != nil {
			return
		}
		a, err := wire.MatchAnswerFromProto(&out, b, nil)
		if a == nil {
			if err == nil {
				t.Error("neither an answer nor a violation")
			}
			return
		}
		if len(a.Verdicts) != 3 || a.TTL < 0 || a.TTL > 24*time.Hour || len(a.DataVersion) > 200 {
			t.Errorf("%+v", a)
		}
		for at, e := range a.Errors {
			if at < 0 || at > 2 || e == nil || a.Verdicts[at] != sdk.Failed {
				t.Errorf("%d %+v", at, e)
			}
		}
		for _, v := range a.Verdicts {
			if v > sdk.Failed {
				t.Errorf("%d", v)
			}
		}
	})
}

// FuzzOperators checks that the converted operators are usable.
func FuzzOperators(f *testing.F) {
	for _, out := range []*matchv1.DescribeResponse{
		{Operators: []*matchv1.Operator{{Id: "a/b", CacheTtl: nil, CostNs: 1 << 63}, {Id: "a/b"}, {Id: "exact"}}},
		{Operators: []*matchv1.Operator{{Id: "a/c", ValueSchema: []byte(`{}`), Examples: []*matchv1.Example{{ValueJson: []byte(`1`), PropertyJson: []byte(`2`), Result: 99}}}}},
	} {
		encoded, err := proto.Marshal(out)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		var out matchv1.DescribeResponse
		if proto.Unmarshal(encoded, &out) != nil {
			return
		}
		seen := map[string]bool{}
		operators, _ := wire.OperatorsFromProto(out.GetOperators())
		for _, o := range operators {
			if seen[o.ID] || strings.Count(o.ID, "/") != 1 || o.CacheTTL < 0 || o.Cost < 0 || o.Purity > sdk.DataDependent || o.Missing > sdk.MissingMatches {
				t.Errorf("%+v", o)
			}
			seen[o.ID] = true
		}
	})
}

// FuzzNotifyAnswer checks that every answer of a notifier has valid results.
func FuzzNotifyAnswer(f *testing.F) {
	for _, out := range []*notifyv1.NotifyResponse{
		{}, {Results: []*notifyv1.NotifyResult{{Outcome: 1}, {Outcome: 3}}}, {Results: []*notifyv1.NotifyResult{{Outcome: 99}, {}}},
		{Results: []*notifyv1.NotifyResult{{Outcome: 4, Rate: &notifyv1.Rate{Remaining: math.MaxUint32}}, {}}},
	} {
		encoded, err := proto.Marshal(out)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	items := []*sdk.Notification{{ID: "a"}, {ID: "b", Destination: "x"}}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		var out notifyv1.NotifyResponse
		if proto.Unmarshal(encoded, &out) != nil {
			return
		}
		results, err := wire.NotifyResultsFromProto(&out, items, nil)
		if len(results) != 0 && len(results) != 2 || len(results) == 0 && err == nil {
			t.Fatalf("%+v %v", results, err)
		}
		for _, r := range results {
			failed := r.Outcome == sdk.Retry || r.Outcome == sdk.Dropped
			if r.Outcome < sdk.Delivered || r.Outcome > sdk.Dropped || failed != (r.Err != nil) {
				t.Errorf("%+v", r)
			}
			if r.Err != nil && (r.Err.Class == sdk.ClassUnspecified || r.Err.RetryAfter < 0 || r.Err.RetryAfter > time.Hour) {
				t.Errorf("%+v", r.Err)
			}
			if r.Rate != nil && (r.Rate.Remaining < 0 || r.Rate.ResetAfter < 0 || r.Rate.ResetAfter > time.Hour) {
				t.Errorf("%+v", r.Rate)
			}
		}
	})
}
