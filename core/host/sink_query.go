package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/guidonhq/guidon/core/host/metrics"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/queryv1alpha1"
)

// maxPeople is the largest page of people.
const maxPeople = 100_000

// Queries reports whether the running sink answers queries about its events.
func (i *SinkInstance) Queries() bool {
	s := i.gate.Current()
	return s != nil && slices.Contains(s.Info.GetFeatures(), "sink/query/v1alpha1")
}

// DescribeQuery returns the query capabilities of the sink. The error is always a
// *sdk.Error, here and below: Unsupported for a sink without queries.
func (i *SinkInstance) DescribeQuery(ctx context.Context) (sdk.QueryCapabilities, error) {
	var out *queryv1alpha1.DescribeQueryResponse
	err := i.query(ctx, "describe_query", func(ctx context.Context, q queryv1alpha1.SinkQueryServiceClient) (queryAnswer, error) {
		var err error
		out, err = q.DescribeQuery(ctx, &queryv1alpha1.DescribeQueryRequest{InstanceId: i.name})
		return queryAnswer{out.GetDescribed(), out}, err
	})
	if err != nil {
		return sdk.QueryCapabilities{}, err
	}
	return sdk.QueryCapabilities{
		Fields: out.GetFields(), Operators: out.GetOperators(), People: out.GetPeople(),
		MaxRange: max(0, out.GetMaxRange().AsDuration()), Freshness: max(0, out.GetFreshness().AsDuration()),
	}, nil
}

// CountAction counts the matching events. When the sink does not support some
// predicates it counts nothing, and the result names them.
func (i *SinkInstance) CountAction(ctx context.Context, query *sdk.ActionQuery, bucket time.Duration) (sdk.CountResult, error) {
	var out *queryv1alpha1.CountActionResponse
	err := i.query(ctx, "count_action", func(ctx context.Context, q queryv1alpha1.SinkQueryServiceClient) (queryAnswer, error) {
		req := &queryv1alpha1.CountActionRequest{InstanceId: i.name, Query: wire.QueryToProto(query)}
		if bucket > 0 {
			req.Bucket = durationpb.New(bucket)
		}
		var err error
		out, err = q.CountAction(ctx, req)
		return queryAnswer{out.GetCounted() || len(out.GetUnsupported()) > 0, out}, err
	})
	if err != nil {
		return sdk.CountResult{}, err
	}
	r := sdk.CountResult{AsOfSeq: out.GetAsOfSeq(), Partial: out.GetPartial(), Unsupported: wire.PredicatesFromProto(out.GetUnsupported())}
	if len(r.Unsupported) > 0 {
		return r, nil
	}
	r.Matched = out.GetMatched()
	for _, b := range out.GetBuckets() {
		r.Buckets = append(r.Buckets, sdk.QueryBucket{Start: time.UnixMicro(b.GetStartUs()).UTC(), Count: b.GetCount()})
	}
	return r, nil
}

// PeopleOfAction returns one page of at most limit people with matching events, after
// cursor.
func (i *SinkInstance) PeopleOfAction(ctx context.Context, query *sdk.ActionQuery, limit int, cursor []byte) (sdk.PeoplePage, error) {
	var page sdk.PeoplePage
	err := i.query(ctx, "people_of_action", func(ctx context.Context, q queryv1alpha1.SinkQueryServiceClient) (queryAnswer, error) {
		limit := min(max(1, limit), maxPeople)
		stream, err := q.PeopleOfAction(ctx, &queryv1alpha1.PeopleOfActionRequest{
			InstanceId: i.name, Query: wire.QueryToProto(query), Limit: uint32(limit), Cursor: cursor,
		})
		if err != nil {
			return queryAnswer{}, err
		}
		for {
			out, err := stream.Recv()
			switch {
			case errors.Is(err, io.EOF):
				return queryAnswer{}, nil // the stream ended before it was complete
			case err != nil:
				return queryAnswer{}, err
			}
			page.AsOfSeq, page.Cursor = out.GetAsOfSeq(), out.GetCursor()
			page.Unsupported = append(page.Unsupported, wire.PredicatesFromProto(out.GetUnsupported())...)
			for _, p := range out.GetPeople() {
				page.People = append(page.People, sdk.QueryPerson{
					DistinctID: p.GetDistinctId(), Count: p.GetCount(),
					FirstSeen: time.UnixMicro(p.GetFirstSeenUs()).UTC(), LastSeen: time.UnixMicro(p.GetLastSeenUs()).UTC(),
				})
			}
			done := out.GetComplete() || len(page.Unsupported) > 0
			if len(page.People) > limit {
				return queryAnswer{}, nil // more than requested
			}
			if done || out.GetError() != nil {
				return queryAnswer{done, out}, nil
			}
		}
	})
	if err != nil {
		return sdk.PeoplePage{}, err
	}
	return page, nil
}

// queryAnswer is an answer message. given is false when it holds no result; it may
// then hold an error.
type queryAnswer struct {
	given   bool
	message interface{ GetError() *pluginv1.Error }
}

// query makes one query call. Queries have the timeout of a flush and do not count for
// the sink's MaxInFlight.
func (i *SinkInstance) query(ctx context.Context, method string, call func(context.Context, queryv1alpha1.SinkQueryServiceClient) (queryAnswer, error)) error {
	s := i.gate.Enter()
	if s == nil {
		return wire.Unavailable("the plugin is not running")
	}
	defer s.InFlight.Done()
	if !slices.Contains(s.Info.GetFeatures(), "sink/query/v1alpha1") {
		return wire.NewError(sdk.ClassUnsupported, "no_queries", "the sink answers no questions")
	}
	var a queryAnswer
	err := s.Call(ctx, method, s.Timeouts.Flush, func(ctx context.Context) (_ string, err error) {
		a, err = call(ctx, queryv1alpha1.NewSinkQueryServiceClient(s.GRPC))
		return metrics.Outcome(a.given), err
	})
	if err != nil {
		return i.anyCallError(ctx, s, err)
	}
	s.RecordAnswer()
	if a.message != nil {
		if refused := wire.ErrorFromProto(a.message.GetError(), s.Redactor); refused != nil {
			i.handleInstanceError(s, refused)
			return refused
		}
	}
	if !a.given {
		return i.rejectAnswer(&wire.ContractViolation{Kind: "no_outcome", Detail: fmt.Sprintf("%s was neither answered nor refused", method)})
	}
	return nil
}
