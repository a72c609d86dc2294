package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/matchv1"
)

// Limits of the host on values that a matcher reports.
const (
	maxDataVersion = 200
	maxCacheTTL    = 24 * time.Hour
)

// MatchProgram is the value of a filter for an operator.
type MatchProgram struct {
	// ID is a hash of operator, version and value, equal on every node and after
	// every restart.
	ID [32]byte
	// Operator is the operator's ID, Value the compact JSON of the value.
	Operator string
	Value    json.RawMessage
}

// NewMatchProgram returns the program of a value for an operator. It fails when the
// value is not JSON.
func NewMatchProgram(o sdk.Operator, value json.RawMessage) (MatchProgram, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return MatchProgram{}, fmt.Errorf("read the value of %s: %w", o.ID, err)
	}
	p := MatchProgram{Operator: o.ID, Value: compact.Bytes()}
	p.ID = sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", o.ID, o.Version, p.Value))
	return p, nil
}

// ToProto converts a program, optionally without its value.
func (p *MatchProgram) ToProto(withValue bool) *matchv1.Program {
	out := &matchv1.Program{ProgramId: p.ID[:], OperatorId: p.Operator}
	if withValue {
		out.ValueJson = p.Value
	}
	return out
}

// Compiled is the result of a matcher's check of a filter value.
type Compiled struct {
	// OK is true for a valid value.
	OK bool
	// Problems are errors, or warnings about a valid value; their pointers are
	// places in the value.
	Problems []Diagnostic
	// Reads are the properties that the program reads instead of the filter's own.
	Reads []string
	// Cost is the approximate time of one evaluation.
	Cost time.Duration
}

// MatchBatch is a batch of pairs of filter values and property values to evaluate.
type MatchBatch struct {
	// Programs are the filter values, each once, at most 65,536.
	Programs []MatchProgram
	// Values are the property values, each once: any JSON. For a program that
	// reads its own properties a value is the object of the existing ones.
	Values []json.RawMessage
	// Pairs are the pairs to evaluate.
	Pairs []MatchPair
	// Now is the time of the evaluation.
	Now time.Time
}

// MatchPair is a pair of indexes into Programs and Values of a MatchBatch.
type MatchPair struct{ Program, Value uint32 }

// MatchAnswer is the answer of a matcher to a MatchBatch.
type MatchAnswer struct {
	// Verdicts has one for each pair.
	Verdicts []sdk.Verdict
	// Errors are the reasons of failed pairs, by index; some may be missing.
	Errors map[int]*sdk.Error
	// DataVersion is the version of the data that the matcher used.
	DataVersion string
	// TTL is the longest time to cache the verdicts; 0 leaves it to the
	// operators.
	TTL time.Duration
}

// CompiledFromProto converts the answer to a Compile of n programs.
func CompiledFromProto(out *matchv1.CompileResponse, n int, redactor *secret.Redactor) ([]Compiled, *ContractViolation) {
	if len(out.GetResults()) != n {
		return nil, &ContractViolation{"result_count", fmt.Sprintf("%d results for %d programs", len(out.GetResults()), n)}
	}
	results := make([]Compiled, n)
	for k, m := range out.GetResults() {
		r := &results[k]
		r.OK, r.Problems = m.GetCompiled(), DiagnosticsFromProto(m.GetDiagnostics(), redactor)
		r.Cost = time.Duration(min(m.GetCostNs(), uint64(time.Minute)))
		if !r.OK && len(r.Problems) == 0 {
			return nil, &ContractViolation{"no_outcome", "a value was neither compiled nor refused"}
		}
		for _, name := range m.GetReads() {
			if len(name) > 0 && len(name) <= 400 && len(r.Reads) < 100 {
				r.Reads = append(r.Reads, name)
			}
		}
	}
	return results, nil
}

// ToProto converts a batch. Programs that the plugin knows are sent without value.
func (b *MatchBatch) ToProto(instance string, known *KnownPrograms) *matchv1.MatchBatchRequest {
	req := &matchv1.MatchBatchRequest{
		InstanceId: instance, NowUs: b.Now.UnixMicro(),
		Programs: make([]*matchv1.Program, len(b.Programs)), Values: make([][]byte, len(b.Values)),
		PairProgram: make([]uint32, len(b.Pairs)), PairValue: make([]uint32, len(b.Pairs)),
	}
	missing := known.missing(b.Programs)
	for k := range b.Programs {
		req.Programs[k] = b.Programs[k].ToProto(missing == nil || missing[k])
	}
	for k, v := range b.Values {
		req.Values[k] = v
	}
	for k, p := range b.Pairs {
		req.PairProgram[k], req.PairValue[k] = p.Program, p.Value
	}
	return req
}

// OnlyPrograms returns the pairs of the given programs, and their indexes in b.
func (b *MatchBatch) OnlyPrograms(programs []uint32) (part *MatchBatch, at []int) {
	wanted := make(map[uint32]bool, len(programs))
	for _, p := range programs {
		wanted[p] = true
	}
	part = &MatchBatch{Programs: b.Programs, Values: b.Values, Now: b.Now}
	for k, pair := range b.Pairs {
		if wanted[pair.Program] {
			part.Pairs = append(part.Pairs, pair)
			at = append(at, k)
		}
	}
	return part, at
}

// MatchAnswerFromProto converts the answer to b. The answer is nil when the number of
// verdicts is wrong or it requests a program that was not sent. An invalid verdict
// becomes Unknown, and the violation is returned along with the answer.
func MatchAnswerFromProto(out *matchv1.MatchBatchResponse, b *MatchBatch, redactor *secret.Redactor) (*MatchAnswer, *ContractViolation) {
	if len(out.GetVerdicts()) != len(b.Pairs) {
		return nil, &ContractViolation{"verdict_count", fmt.Sprintf("%d verdicts for %d pairs", len(out.GetVerdicts()), len(b.Pairs))}
	}
	for _, p := range out.GetNeedPrograms() {
		if int(p) >= len(b.Programs) {
			return nil, &ContractViolation{"program_index", fmt.Sprintf("program %d of %d is needed", p, len(b.Programs))}
		}
	}
	answer := &MatchAnswer{
		Verdicts:    make([]sdk.Verdict, len(b.Pairs)),
		DataVersion: DataVersion(out.GetDataVersion()), TTL: ttl(out.GetTtl()),
	}
	var violation *ContractViolation
	for k, v := range out.GetVerdicts() {
		if v > byte(sdk.Failed) {
			violation = &ContractViolation{"verdict", fmt.Sprintf("verdict %d", v)}
			continue
		}
		answer.Verdicts[k] = sdk.Verdict(v)
	}
	for _, e := range out.GetErrors() {
		at, err := int(e.GetPair()), ErrorFromProto(e.GetError(), redactor)
		if at >= len(b.Pairs) || err == nil || answer.Verdicts[at] != sdk.Failed {
			continue
		}
		if answer.Errors == nil {
			answer.Errors = map[int]*sdk.Error{}
		}
		answer.Errors[at] = err
	}
	return answer, violation
}

// Merge replaces the verdicts at the given indexes by those of part.
func (a *MatchAnswer) Merge(part *MatchAnswer, at []int) {
	for k, place := range at {
		a.Verdicts[place] = part.Verdicts[k]
		if err := part.Errors[k]; err != nil {
			if a.Errors == nil {
				a.Errors = map[int]*sdk.Error{}
			}
			a.Errors[place] = err
		}
	}
	if part.TTL > 0 && (a.TTL == 0 || part.TTL < a.TTL) {
		a.TTL = part.TTL
	}
	if a.DataVersion != part.DataVersion {
		a.DataVersion = "" // the versions differ
	}
}

func ttl(d *durationpb.Duration) time.Duration {
	return min(max(0, d.AsDuration()), maxCacheTTL)
}

// MatcherPropertiesFromProto converts the properties of a matcher, within the limits
// of the host.
func MatcherPropertiesFromProto(p *matchv1.MatcherProperties) sdk.MatcherProperties {
	return sdk.MatcherProperties{MaxInFlight: min(max(1, int(p.GetMaxInFlight())), maxInFlight)}
}

// DataVersion limits the length of a data version.
func DataVersion(version string) string { return text.Ellipsis(version, maxDataVersion) }
