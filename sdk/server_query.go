package sdk

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/guidonhq/guidon/sdk/pb/queryv1alpha1"
)

// queryServer implements the query service of sinks that support it. Queries do not count
// for MaxInFlight, so that a report does not delay a write.
type queryServer struct {
	queryv1alpha1.UnimplementedSinkQueryServiceServer
	*server
}

// query runs fn on an open instance that supports queries.
func (s *queryServer) query(ctx context.Context, id string, fn func(context.Context, Querier) error) *Error {
	if !s.begin() {
		return draining()
	}
	defer s.end()
	in := s.instance(id)
	if in == nil {
		return unknownInstance(id)
	}
	return AsError(with(in, func(v sinkValue) error {
		q, ok := v.Sink.(Querier)
		if !ok {
			return Errorf(ClassUnsupported, "no_queries", "the plugin %s answers no questions", s.plugin.Name)
		}
		return fn(in.context(ctx), q)
	}))
}

// DescribeQuery returns the supported queries.
func (s *queryServer) DescribeQuery(ctx context.Context, req *queryv1alpha1.DescribeQueryRequest) (*queryv1alpha1.DescribeQueryResponse, error) {
	var c QueryCapabilities
	failed := s.query(ctx, req.GetInstanceId(), func(ctx context.Context, q Querier) (err error) {
		c, err = q.DescribeQuery(ctx)
		return err
	})
	if failed != nil {
		return &queryv1alpha1.DescribeQueryResponse{Error: errorToProto(failed)}, nil
	}
	return &queryv1alpha1.DescribeQueryResponse{
		Described: true, Fields: c.Fields, Operators: c.Operators, People: c.People,
		MaxRange: durationpb.New(c.MaxRange), Freshness: durationpb.New(c.Freshness),
	}, nil
}

// CountAction counts the events that match.
func (s *queryServer) CountAction(ctx context.Context, req *queryv1alpha1.CountActionRequest) (*queryv1alpha1.CountActionResponse, error) {
	var r CountResult
	failed := s.query(ctx, req.GetInstanceId(), func(ctx context.Context, q Querier) (err error) {
		r, err = q.CountAction(ctx, queryFromProto(req.GetQuery()), req.GetBucket().AsDuration())
		return err
	})
	if failed != nil {
		return &queryv1alpha1.CountActionResponse{Error: errorToProto(failed)}, nil
	}
	out := &queryv1alpha1.CountActionResponse{
		Counted: len(r.Unsupported) == 0, Matched: r.Matched, AsOfSeq: r.AsOfSeq, Partial: r.Partial,
		Unsupported: predicatesToProto(r.Unsupported),
	}
	for _, b := range r.Buckets {
		out.Buckets = append(out.Buckets, &queryv1alpha1.Bucket{StartUs: b.Start.UnixMicro(), Count: b.Count})
	}
	return out, nil
}

// PeopleOfAction streams people with matching events.
func (s *queryServer) PeopleOfAction(req *queryv1alpha1.PeopleOfActionRequest, stream grpc.ServerStreamingServer[queryv1alpha1.PeopleOfActionResponse]) error {
	last := &queryv1alpha1.PeopleOfActionResponse{Complete: true}
	failed := s.query(stream.Context(), req.GetInstanceId(), func(ctx context.Context, q Querier) error {
		return q.PeopleOfAction(ctx, queryFromProto(req.GetQuery()), int(req.GetLimit()), req.GetCursor(), func(p PeoplePage) error {
			out := &queryv1alpha1.PeopleOfActionResponse{
				Cursor: p.Cursor, AsOfSeq: p.AsOfSeq, Unsupported: predicatesToProto(p.Unsupported),
			}
			for _, person := range p.People {
				out.People = append(out.People, &queryv1alpha1.Person{
					DistinctId: person.DistinctID, Count: person.Count,
					FirstSeenUs: person.FirstSeen.UnixMicro(), LastSeenUs: person.LastSeen.UnixMicro(),
				})
			}
			last.Cursor, last.AsOfSeq = p.Cursor, p.AsOfSeq
			last.Complete = len(p.Unsupported) == 0
			return stream.Send(out)
		})
	})
	if failed != nil {
		last = &queryv1alpha1.PeopleOfActionResponse{Error: errorToProto(failed)}
	}
	return stream.Send(last)
}

func queryFromProto(m *queryv1alpha1.ActionQuery) *ActionQuery {
	q := &ActionQuery{
		ProjectID: m.GetProjectId(), From: time.UnixMicro(m.GetFromUs()).UTC(), To: time.UnixMicro(m.GetToUs()).UTC(),
		MinSeq: m.GetMinSeq(), MaxRowsScanned: m.GetMaxRowsScanned(),
	}
	for _, s := range m.GetSteps() {
		step := QueryStep{Event: s.GetEvent()}
		for _, p := range s.GetAllOf() {
			step.AllOf = append(step.AllOf, Predicate{Field: p.GetField(), Operator: p.GetOperator(), Value: p.GetValueJson()})
		}
		q.Steps = append(q.Steps, step)
	}
	return q
}

func predicatesToProto(list []Predicate) []*queryv1alpha1.Predicate {
	var out []*queryv1alpha1.Predicate
	for _, p := range list {
		out = append(out, &queryv1alpha1.Predicate{Field: p.Field, Operator: p.Operator, ValueJson: p.Value})
	}
	return out
}
