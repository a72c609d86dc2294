package wire

import (
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// BatchToProto converts a batch to columns.
func BatchToProto(instance string, generation uint64, b *sdk.Batch) *sinkv1.WriteBatchRequest {
	n := len(b.Records)
	r := &sinkv1.RecordBatch{
		Ids: make([]byte, 0, 16*n), Json: make([][]byte, n), ReceivedUs: make([]int64, n), ProjectIndex: make([]uint32, n),
	}
	index := map[int64]uint32{}
	for i := range b.Records {
		rec := &b.Records[i]
		at, known := index[rec.ProjectID]
		if !known {
			at = uint32(len(r.Projects))
			index[rec.ProjectID] = at
			r.Projects = append(r.Projects, rec.ProjectID)
		}
		r.Ids = append(r.Ids, rec.UUID[:]...)
		r.Json[i], r.ReceivedUs[i], r.ProjectIndex[i] = rec.JSON, rec.ReceivedAt.UnixMicro(), at
	}
	return &sinkv1.WriteBatchRequest{
		InstanceId: instance, Generation: generation, BatchId: b.ID, Attempt: b.Attempt,
		FirstSeq: b.FirstSeq, LastSeq: b.LastSeq, Payload: &sinkv1.WriteBatchRequest_Records{Records: r},
	}
}

// WriteResultFromProto converts the answer to b. highest is the highest sequence
// number sent to this process, staged the watermark that it had reported before
// the call. The error is a *ContractViolation.
func WriteResultFromProto(out *sinkv1.WriteBatchResponse, b *sdk.Batch, highest, staged uint64, redactor *secret.Redactor) (sdk.WriteResult, error) {
	r := sdk.WriteResult{
		Outcome: sdk.Outcome(out.GetOutcome()), CommittedThrough: out.GetCommittedThrough(),
		StagedEvents: out.GetStagedEvents(), StagedBytes: out.GetStagedBytes(), Duplicates: out.GetDuplicates(),
	}
	if r.CommittedThrough > highest {
		return r, &ContractViolation{"watermark_ahead", fmt.Sprintf("committed through %d, sent through %d", r.CommittedThrough, highest)}
	}
	switch out.GetOutcome() {
	case sinkv1.WriteBatchResponse_OUTCOME_COMMITTED, sinkv1.WriteBatchResponse_OUTCOME_PARTIAL:
		if r.CommittedThrough < b.LastSeq {
			return r, &ContractViolation{"watermark_behind", fmt.Sprintf("%s, but committed through %d of %d", r.Outcome, r.CommittedThrough, b.LastSeq)}
		}
	case sinkv1.WriteBatchResponse_OUTCOME_STAGED:
		if r.CommittedThrough < staged {
			return r, &ContractViolation{"watermark_backwards", fmt.Sprintf("committed through %d after %d", r.CommittedThrough, staged)}
		}
	case sinkv1.WriteBatchResponse_OUTCOME_REJECTED:
		r.CommittedThrough = 0
		if r.Err = ErrorFromProto(out.GetError(), redactor); r.Err == nil {
			r.Err = unspecified("rejected without a reason")
		}
		return r, nil
	default:
		return r, &ContractViolation{"no_outcome", fmt.Sprintf("outcome %d", out.GetOutcome())}
	}
	return failuresFromProto(r, out, b, redactor)
}

// failuresFromProto adds the failures of an otherwise valid answer.
func failuresFromProto(r sdk.WriteResult, out *sinkv1.WriteBatchResponse, b *sdk.Batch, redactor *secret.Redactor) (sdk.WriteResult, error) {
	partial := r.Outcome == sdk.Partial
	if !partial && len(out.GetFailures()) > 0 {
		return r, &ContractViolation{"failures_unexpected", fmt.Sprintf("%d failures with outcome %s", len(out.GetFailures()), r.Outcome)}
	}
	if partial && len(out.GetFailures()) == 0 {
		return r, &ContractViolation{"failures_missing", "outcome partial without failures"}
	}
	seen := make(map[uint32]bool, len(out.GetFailures()))
	for _, f := range out.GetFailures() {
		if int64(f.GetIndex()) >= int64(len(b.Records)) || seen[f.GetIndex()] {
			return r, &ContractViolation{"failure_index", fmt.Sprintf("index %d of %d records", f.GetIndex(), len(b.Records))}
		}
		seen[f.GetIndex()] = true
		err := ErrorFromProto(f.GetError(), redactor)
		if err == nil {
			err = unspecified("failed without a reason")
		}
		r.Failures = append(r.Failures, sdk.Failure{Index: int(f.GetIndex()), Err: err})
	}
	return r, nil
}

// SinkPropertiesFromProto converts the properties of a sink, within the limits of
// the host.
func SinkPropertiesFromProto(p *sinkv1.SinkProperties) sdk.SinkProperties {
	out := sdk.SinkProperties{
		MaxInFlight: min(max(1, int(p.GetMaxInFlight())), maxInFlight),
		MaxEvents:   int(p.GetMaxEvents()),
		MaxBytes:    int(min(p.GetMaxBytes(), maxBatchBytes)),
		Linger:      min(max(0, p.GetLinger().AsDuration()), time.Minute),

		MaxStagedEvents: int(min(p.GetMaxStagedEvents(), 1<<40)),
		MaxStagedBytes:  int(min(p.GetMaxStagedBytes(), 1<<40)),
		MaxStagedAge:    max(0, p.GetMaxStagedAge().AsDuration()),
	}
	switch p.GetOrdering() {
	case sinkv1.SinkProperties_ORDERING_PER_KEY:
		out.Ordering = sdk.OrderPerKey
	case sinkv1.SinkProperties_ORDERING_TOTAL:
		out.Ordering, out.MaxInFlight = sdk.OrderTotal, 1
	default:
		out.Ordering = sdk.OrderNone
	}
	switch p.GetDedup() {
	case sinkv1.SinkProperties_DEDUP_BY_BATCH_ID:
		out.Dedup = sdk.DedupByBatchID
	case sinkv1.SinkProperties_DEDUP_BY_EVENT_ID:
		out.Dedup = sdk.DedupByEventID
	default:
		out.Dedup = sdk.DedupNone
	}
	if p.GetCommit() == sinkv1.SinkProperties_COMMIT_ON_FLUSH {
		out.Commit = sdk.CommitOnFlush
	}
	switch p.GetDurability() {
	case sinkv1.SinkProperties_DURABILITY_LOCAL_DISK:
		out.Durability = sdk.DurabilityLocalDisk
	case sinkv1.SinkProperties_DURABILITY_REPLICATED:
		out.Durability = sdk.DurabilityReplicated
	default:
		out.Durability = sdk.DurabilityMemory
	}
	return out
}

// LimitBatchBytes limits batches to the plugin's largest message; 0 is unknown. It
// reserves a quarter of the message for everything except events.
func LimitBatchBytes(p sdk.SinkProperties, largest uint64) sdk.SinkProperties {
	if bytes := largest / 4 * 3; largest > 0 && bytes < maxBatchBytes && (p.MaxBytes == 0 || p.MaxBytes > int(bytes)) {
		p.MaxBytes = max(1, int(bytes))
	}
	return p
}

// FlushResultFromProto converts the answer to a flush. highest and staged are as for
// WriteResultFromProto. An empty answer after staged records is a violation.
func FlushResultFromProto(out *sinkv1.FlushResponse, highest, staged uint64, redactor *secret.Redactor) (sdk.FlushResult, *ContractViolation) {
	r := sdk.FlushResult{CommittedThrough: out.GetCommittedThrough()}
	switch {
	case r.CommittedThrough > highest:
		return r, &ContractViolation{"watermark_ahead", fmt.Sprintf("flushed through %d, sent through %d", r.CommittedThrough, highest)}
	case r.CommittedThrough < staged:
		return r, &ContractViolation{"watermark_backwards", fmt.Sprintf("flushed through %d after %d", r.CommittedThrough, staged)}
	}
	for _, f := range out.GetFailures() {
		err := ErrorFromProto(f.GetError(), redactor)
		if err == nil {
			err = unspecified("failed without a reason")
		}
		r.Failures = append(r.Failures, sdk.FlushFailure{Seq: f.GetSeq(), Err: err})
	}
	return r, nil
}

// unspecified is the error of a failure that the plugin does not explain.
func unspecified(message string) *sdk.Error {
	return &sdk.Error{Class: sdk.ClassTransient, Code: "unspecified", Message: message}
}
