package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/queryv1alpha1"
)

// maxPeople is how many people one question is answered with at the most.
const maxPeople = 100_000

// Queries reports whether the sink that runs answers questions about its events.
func (i *SinkInstance) Queries() bool {
	s := i.gate.current()
	return s != nil && slices.Contains(s.info.GetFeatures(), "sink/query/v1alpha1")
}

// DescribeQuery asks the sink what it can be asked. The error is always a
// *sdk.Error, here and below: Unsupported for a sink that answers no questions.
func (i *SinkInstance) DescribeQuery(ctx context.Context) (sdk.QueryCapabilities, error) {
	var out *queryv1alpha1.DescribeQueryResponse
	err := i.ask(ctx, "describe_query", func(ctx context.Context, q queryv1alpha1.SinkQueryServiceClient) (answer, error) {
		var err error
		out, err = q.DescribeQuery(ctx, &queryv1alpha1.DescribeQueryRequest{InstanceId: i.name})
		return answer{out.GetDescribed(), out}, err
	})
	if err != nil {
		return sdk.QueryCapabilities{}, err
	}
	return sdk.QueryCapabilities{
		Fields: out.GetFields(), Operators: out.GetOperators(), People: out.GetPeople(),
		MaxRange: max(0, out.GetMaxRange().AsDuration()), Freshness: max(0, out.GetFreshness().AsDuration()),
	}, nil
}

// CountAction asks the sink how many events match. When it cannot compare with
// some predicates nothing was counted, and the result names them.
func (i *SinkInstance) CountAction(ctx context.Context, query *sdk.ActionQuery, bucket time.Duration) (sdk.CountResult, error) {
	var out *queryv1alpha1.CountActionResponse
	err := i.ask(ctx, "count_action", func(ctx context.Context, q queryv1alpha1.SinkQueryServiceClient) (answer, error) {
		req := &queryv1alpha1.CountActionRequest{InstanceId: i.name, Query: queryToProto(query)}
		if bucket > 0 {
			req.Bucket = durationpb.New(bucket)
		}
		var err error
		out, err = q.CountAction(ctx, req)
		return answer{out.GetCounted() || len(out.GetUnsupported()) > 0, out}, err
	})
	if err != nil {
		return sdk.CountResult{}, err
	}
	r := sdk.CountResult{AsOfSeq: out.GetAsOfSeq(), Partial: out.GetPartial(), Unsupported: predicatesFromProto(out.GetUnsupported())}
	if len(r.Unsupported) > 0 {
		return r, nil
	}
	r.Matched = out.GetMatched()
	for _, b := range out.GetBuckets() {
		r.Buckets = append(r.Buckets, sdk.QueryBucket{Start: time.UnixMicro(b.GetStartUs()).UTC(), Count: b.GetCount()})
	}
	return r, nil
}

// PeopleOfAction asks the sink who did it: one page of at most limit people,
// which goes on after cursor.
func (i *SinkInstance) PeopleOfAction(ctx context.Context, query *sdk.ActionQuery, limit int, cursor []byte) (sdk.PeoplePage, error) {
	var page sdk.PeoplePage
	err := i.ask(ctx, "people_of_action", func(ctx context.Context, q queryv1alpha1.SinkQueryServiceClient) (answer, error) {
		limit := min(max(1, limit), maxPeople)
		stream, err := q.PeopleOfAction(ctx, &queryv1alpha1.PeopleOfActionRequest{
			InstanceId: i.name, Query: queryToProto(query), Limit: uint32(limit), Cursor: cursor,
		})
		if err != nil {
			return answer{}, err
		}
		for {
			out, err := stream.Recv()
			switch {
			case errors.Is(err, io.EOF):
				return answer{}, nil // it ended without saying that it is complete
			case err != nil:
				return answer{}, err
			}
			page.AsOfSeq, page.Cursor = out.GetAsOfSeq(), out.GetCursor()
			page.Unsupported = append(page.Unsupported, predicatesFromProto(out.GetUnsupported())...)
			for _, p := range out.GetPeople() {
				page.People = append(page.People, sdk.QueryPerson{
					DistinctID: p.GetDistinctId(), Count: p.GetCount(),
					FirstSeen: time.UnixMicro(p.GetFirstSeenUs()).UTC(), LastSeen: time.UnixMicro(p.GetLastSeenUs()).UTC(),
				})
			}
			done := out.GetComplete() || len(page.Unsupported) > 0
			if len(page.People) > limit {
				return answer{}, nil // more than it was asked for
			}
			if done || out.GetError() != nil {
				return answer{done, out}, nil
			}
		}
	})
	if err != nil {
		return sdk.PeoplePage{}, err
	}
	return page, nil
}

// answer is whether a question was answered, and the message that may say why
// not.
type answer struct {
	given   bool
	message failing
}

// ask puts one question. Questions have the time of a flush, and no part in the
// sink's MaxInFlight.
func (i *SinkInstance) ask(ctx context.Context, method string, put func(context.Context, queryv1alpha1.SinkQueryServiceClient) (answer, error)) error {
	s := i.gate.enter()
	if s == nil {
		return unavailable("the plugin is not running")
	}
	defer s.busy.leave()
	if !slices.Contains(s.info.GetFeatures(), "sink/query/v1alpha1") {
		return refusal(sdk.ClassUnsupported, "no_queries", "the sink answers no questions")
	}
	var a answer
	err := s.call(ctx, method, s.timeouts.Flush, func(ctx context.Context) (_ string, err error) {
		a, err = put(ctx, queryv1alpha1.NewSinkQueryServiceClient(s.conn))
		return accepted(a.given), err
	})
	if err != nil {
		refused, unknown := i.sup.failed(ctx, s, err)
		if refused != nil {
			return refused
		}
		return unknown
	}
	s.late.Store(0)
	if a.message != nil {
		if refused := errorFromProto(a.message.GetError(), s.scrub); refused != nil {
			i.sup.heed(s, refused)
			return refused
		}
	}
	if !a.given {
		return i.sup.disbelieve(&breach{"no_outcome", fmt.Sprintf("%s was neither answered nor refused", method)})
	}
	return nil
}

func queryToProto(q *sdk.ActionQuery) *queryv1alpha1.ActionQuery {
	out := &queryv1alpha1.ActionQuery{
		ProjectId: q.ProjectID, FromUs: q.From.UnixMicro(), ToUs: q.To.UnixMicro(), MinSeq: q.MinSeq, MaxRowsScanned: q.MaxRowsScanned,
	}
	for _, s := range q.Steps {
		step := &queryv1alpha1.Step{Event: s.Event}
		for _, p := range s.AllOf {
			step.AllOf = append(step.AllOf, &queryv1alpha1.Predicate{Field: p.Field, Operator: p.Operator, ValueJson: p.Value})
		}
		out.Steps = append(out.Steps, step)
	}
	return out
}

func predicatesFromProto(list []*queryv1alpha1.Predicate) []sdk.Predicate {
	var out []sdk.Predicate
	for _, p := range list {
		out = append(out, sdk.Predicate{Field: clip(p.GetField(), 400), Operator: clip(p.GetOperator(), 100), Value: p.GetValueJson()})
	}
	return out
}
