package host

import (
	"fmt"
	"time"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// What the host allows whatever a plugin says.
const (
	maxInFlight   = 64
	maxBatchBytes = 4 << 20
	minRetryAfter = 100 * time.Millisecond
	maxRetryAfter = time.Hour
)

// batchToProto puts a batch into columns.
func batchToProto(instance string, generation uint64, b *sdk.Batch) *sinkv1.WriteBatchRequest {
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

// breach is an answer that breaks the contract; what it says is not believed.
type breach struct{ kind, detail string }

func (b *breach) Error() string { return b.kind + ": " + b.detail }

// resultFromProto reads an answer to b. highest is the highest sequence number
// ever sent to this process, staged the watermark it had reported before the
// call. An answer that breaks the contract is a *breach.
func resultFromProto(out *sinkv1.WriteBatchResponse, b *sdk.Batch, highest, staged uint64, scrub *scrubber) (sdk.WriteResult, error) {
	r := sdk.WriteResult{
		Outcome: sdk.Outcome(out.GetOutcome()), CommittedThrough: out.GetCommittedThrough(),
		StagedEvents: out.GetStagedEvents(), StagedBytes: out.GetStagedBytes(), Duplicates: out.GetDuplicates(),
	}
	if r.CommittedThrough > highest {
		return r, &breach{"watermark_ahead", fmt.Sprintf("committed through %d, sent through %d", r.CommittedThrough, highest)}
	}
	switch out.GetOutcome() {
	case sinkv1.WriteBatchResponse_OUTCOME_COMMITTED, sinkv1.WriteBatchResponse_OUTCOME_PARTIAL:
		if r.CommittedThrough < b.LastSeq {
			return r, &breach{"watermark_behind", fmt.Sprintf("%s, but committed through %d of %d", r.Outcome, r.CommittedThrough, b.LastSeq)}
		}
	case sinkv1.WriteBatchResponse_OUTCOME_STAGED:
		if r.CommittedThrough < staged {
			return r, &breach{"watermark_backwards", fmt.Sprintf("committed through %d after %d", r.CommittedThrough, staged)}
		}
	case sinkv1.WriteBatchResponse_OUTCOME_REJECTED:
		r.CommittedThrough = 0
		if r.Err = errorFromProto(out.GetError(), scrub); r.Err == nil {
			r.Err = &sdk.Error{Class: sdk.ClassTransient, Code: "unspecified", Message: "rejected without a reason"}
		}
		return r, nil
	default:
		return r, &breach{"no_outcome", fmt.Sprintf("outcome %d", out.GetOutcome())}
	}
	return failuresFromProto(r, out, b, scrub)
}

// failuresFromProto reads the failures of an answer that is otherwise good.
func failuresFromProto(r sdk.WriteResult, out *sinkv1.WriteBatchResponse, b *sdk.Batch, scrub *scrubber) (sdk.WriteResult, error) {
	partial := r.Outcome == sdk.Partial
	if !partial && len(out.GetFailures()) > 0 {
		return r, &breach{"failures_unexpected", fmt.Sprintf("%d failures with outcome %s", len(out.GetFailures()), r.Outcome)}
	}
	if partial && len(out.GetFailures()) == 0 {
		return r, &breach{"failures_missing", "outcome partial without failures"}
	}
	seen := make(map[uint32]bool, len(out.GetFailures()))
	for _, f := range out.GetFailures() {
		if int64(f.GetIndex()) >= int64(len(b.Records)) || seen[f.GetIndex()] {
			return r, &breach{"failure_index", fmt.Sprintf("index %d of %d records", f.GetIndex(), len(b.Records))}
		}
		seen[f.GetIndex()] = true
		err := errorFromProto(f.GetError(), scrub)
		if err == nil {
			err = &sdk.Error{Class: sdk.ClassTransient, Code: "unspecified", Message: "failed without a reason"}
		}
		r.Failures = append(r.Failures, sdk.Failure{Index: int(f.GetIndex()), Err: err})
	}
	return r, nil
}

// errorFromProto keeps nil nil, covers secrets, and takes a class or source it
// does not know as the weakest one.
func errorFromProto(e *pluginv1.Error, scrub *scrubber) *sdk.Error {
	if e == nil {
		return nil
	}
	out := &sdk.Error{
		Class: sdk.Class(e.GetClass()), Code: clip(scrub.clean(e.GetCode()), 100), Message: clip(scrub.clean(e.GetMessage()), 1000),
		Pointer: e.GetPointer(),
	}
	if e.GetClass() <= pluginv1.Error_CLASS_UNSPECIFIED || e.GetClass() > pluginv1.Error_CLASS_INTERNAL {
		out.Class = sdk.ClassTransient
	}
	if e.GetSource() > 0 && e.GetSource() <= pluginv1.Error_SOURCE_DOWNSTREAM {
		out.Source = sdk.Source(e.GetSource())
	}
	if out.Code == "" {
		out.Code = out.Class.String()
	}
	if e.GetRetryAfter() != nil {
		out.RetryAfter = min(max(e.GetRetryAfter().AsDuration(), minRetryAfter), maxRetryAfter)
	}
	return out
}

// propertiesFromProto reads what a sink wants, within what the host allows.
func propertiesFromProto(p *sinkv1.SinkProperties) sdk.SinkProperties {
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

// fitting keeps batches so small that their messages are not larger than the
// plugin takes; 0 is a plugin that does not say. A quarter is for what a message
// holds beside the events.
func fitting(p sdk.SinkProperties, largest uint64) sdk.SinkProperties {
	if bytes := largest / 4 * 3; largest > 0 && bytes < maxBatchBytes && (p.MaxBytes == 0 || p.MaxBytes > int(bytes)) {
		p.MaxBytes = max(1, int(bytes))
	}
	return p
}

// diagnosticsFromProto reads a plugin's remarks, secrets covered.
func diagnosticsFromProto(items []*pluginv1.Diagnostic, scrub *scrubber) []Diagnostic {
	names := map[pluginv1.Diagnostic_Severity]string{
		pluginv1.Diagnostic_SEVERITY_WARNING: "warning", pluginv1.Diagnostic_SEVERITY_INFO: "info",
	}
	var out []Diagnostic
	for _, d := range items {
		severity := names[d.GetSeverity()]
		if severity == "" {
			severity = "error"
		}
		out = append(out, Diagnostic{
			Severity: severity, Pointer: scrub.clean(d.GetPointer()),
			Summary: clip(scrub.clean(d.GetSummary()), 500), Detail: clip(scrub.clean(d.GetDetail()), 2000),
		})
	}
	return out
}
