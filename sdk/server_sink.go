package sdk

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// sinkServer implements the protocol's sink service.
type sinkServer struct {
	sinkv1.UnimplementedSinkServiceServer
	*server
}

// Open connects an instance.
func (s *sinkServer) Open(ctx context.Context, req *sinkv1.OpenRequest) (*sinkv1.OpenResponse, error) {
	in := s.instance(req.GetInstanceId())
	if in == nil {
		return &sinkv1.OpenResponse{Error: errorToProto(unknownInstance(req.GetInstanceId()))}, nil
	}
	ctx = in.context(ctx)
	var props SinkProperties
	err := openAs(ctx, in, func(v sinkValue) (_ int, err error) {
		props, err = v.Open(ctx, OpenRequest{Instance: in.id, CommittedThrough: req.GetCommittedThrough()})
		if _, flushes := v.Sink.(Flusher); err == nil && props.Commit == CommitOnFlush && !flushes {
			err = Errorf(ClassInternal, "no_flush", "the sink commits on flush and has no method Flush(context.Context, sdk.FlushRequest) (sdk.FlushResult, error)")
		}
		return props.MaxInFlight, err
	})
	if err != nil {
		return &sinkv1.OpenResponse{Error: errorToProto(AsError(err))}, nil
	}
	return &sinkv1.OpenResponse{Opened: true, Properties: propertiesToProto(props)}, nil
}

// WriteBatch hands a batch to the author's Write.
func (s *sinkServer) WriteBatch(ctx context.Context, req *sinkv1.WriteBatchRequest) (*sinkv1.WriteBatchResponse, error) {
	batch, err := batchFromProto(req)
	if err != nil {
		return nil, err
	}
	if !s.begin() {
		return rejection(draining()), nil
	}
	defer s.end()
	in := s.instance(req.GetInstanceId())
	if in == nil {
		return rejection(unknownInstance(req.GetInstanceId())), nil
	}
	ctx = in.context(ctx)
	var result WriteResult
	err = work(ctx, in, func(v sinkValue) (err error) {
		result, err = v.Write(ctx, batch)
		return err
	})
	if err != nil {
		return rejection(AsError(err)), nil
	}
	return resultToProto(batch, result), nil
}

// Flush calls Flush of a sink that stages; for others all answered records are committed
// already.
func (s *sinkServer) Flush(ctx context.Context, req *sinkv1.FlushRequest) (*sinkv1.FlushResponse, error) {
	in := s.instance(req.GetInstanceId())
	if in == nil {
		return &sinkv1.FlushResponse{Error: errorToProto(unknownInstance(req.GetInstanceId()))}, nil
	}
	ctx = in.context(ctx)
	result := FlushResult{CommittedThrough: req.GetUpToSeq()}
	err := work(ctx, in, func(v sinkValue) (err error) {
		if f, ok := v.Sink.(Flusher); ok {
			result, err = f.Flush(ctx, FlushRequest{Reason: FlushReason(req.GetReason()), UpTo: req.GetUpToSeq()})
		}
		return err
	})
	if err != nil {
		return &sinkv1.FlushResponse{Error: errorToProto(AsError(err))}, nil
	}
	out := &sinkv1.FlushResponse{Flushed: result.CommittedThrough >= req.GetUpToSeq(), CommittedThrough: result.CommittedThrough}
	for _, f := range result.Failures {
		out.Failures = append(out.Failures, &sinkv1.StagedFailure{Seq: f.Seq, Error: errorToProto(f.Err)})
	}
	return out, nil
}

// batchFromProto reads the columns. One of another length than the others is a
// mistake of the host.
func batchFromProto(req *sinkv1.WriteBatchRequest) (*Batch, error) {
	r := req.GetRecords()
	n := len(r.GetJson())
	if len(r.GetIds()) != 16*n || len(r.GetReceivedUs()) != n || len(r.GetProjectIndex()) != n {
		return nil, status.Error(codes.InvalidArgument, "columns of different lengths")
	}
	b := &Batch{
		ID: req.GetBatchId(), Attempt: req.GetAttempt(),
		FirstSeq: req.GetFirstSeq(), LastSeq: req.GetLastSeq(), Records: make([]Record, n),
	}
	for i := range b.Records {
		project := int(r.ProjectIndex[i])
		if project >= len(r.Projects) {
			return nil, status.Error(codes.InvalidArgument, "project index out of range")
		}
		rec := &b.Records[i]
		copy(rec.UUID[:], r.Ids[16*i:])
		rec.JSON = r.Json[i]
		rec.ReceivedAt = time.UnixMicro(r.ReceivedUs[i]).UTC()
		rec.ProjectID = r.Projects[project]
	}
	return b, nil
}

// draining is the answer to work that comes when the process is about to end.
func draining() *Error {
	return &Error{Class: ClassTransient, Code: "draining", Message: "the plugin is stopping", Source: SourcePlugin}
}

func rejection(err *Error) *sinkv1.WriteBatchResponse {
	return &sinkv1.WriteBatchResponse{Outcome: sinkv1.WriteBatchResponse_OUTCOME_REJECTED, Error: errorToProto(err)}
}

// resultToProto passes the author's answer on. An answer without an outcome
// stays without one: the host counts it and sends the batch again.
func resultToProto(b *Batch, r WriteResult) *sinkv1.WriteBatchResponse {
	out := &sinkv1.WriteBatchResponse{
		Outcome:          sinkv1.WriteBatchResponse_Outcome(r.Outcome),
		CommittedThrough: r.CommittedThrough,
		Error:            errorToProto(r.Err),
		StagedEvents:     r.StagedEvents, StagedBytes: r.StagedBytes, Duplicates: r.Duplicates,
	}
	if (r.Outcome == Committed || r.Outcome == Partial) && out.CommittedThrough == 0 {
		out.CommittedThrough = b.LastSeq
	}
	for _, f := range r.Failures {
		out.Failures = append(out.Failures, &sinkv1.RecordFailure{Index: uint32(f.Index), Error: errorToProto(f.Err)})
	}
	return out
}

func propertiesToProto(p SinkProperties) *sinkv1.SinkProperties {
	return &sinkv1.SinkProperties{
		MaxInFlight: uint32(max(1, p.MaxInFlight)), MaxEvents: uint32(max(0, p.MaxEvents)), MaxBytes: uint64(max(0, p.MaxBytes)),
		Linger:          durationpb.New(p.Linger),
		Ordering:        sinkv1.SinkProperties_Ordering(p.Ordering + 1),
		Dedup:           sinkv1.SinkProperties_Dedup(p.Dedup + 1),
		Commit:          sinkv1.SinkProperties_Commit(p.Commit + 1),
		Durability:      sinkv1.SinkProperties_Durability(p.Durability + 1),
		MaxStagedEvents: uint64(max(0, p.MaxStagedEvents)), MaxStagedBytes: uint64(max(0, p.MaxStagedBytes)),
		MaxStagedAge: durationpb.New(p.MaxStagedAge),
		Accepts:      []string{"json/v1"},
	}
}

// errorToProto keeps nil nil.
func errorToProto(e *Error) *pluginv1.Error {
	if e == nil {
		return nil
	}
	out := &pluginv1.Error{
		Class: pluginv1.Error_Class(e.Class), Code: e.Code, Message: e.Message,
		Source: pluginv1.Error_Source(e.Source), Pointer: e.Pointer,
	}
	if e.RetryAfter > 0 {
		out.RetryAfter = durationpb.New(e.RetryAfter)
	}
	return out
}
