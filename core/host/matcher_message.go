package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/matchv1"
)

// What the host allows whatever a matcher says.
const (
	maxDataVersion = 200
	maxCacheTTL    = 24 * time.Hour
)

// MatchProgram is the value of a filter for an operator.
type MatchProgram struct {
	// ID is the same for the same operator, version and value on every node and
	// after every restart.
	ID [32]byte
	// Operator is the operator's ID and Value the value, compact JSON.
	Operator string
	Value    json.RawMessage
}

// NewMatchProgram names a value for an operator. It fails when the value is not
// JSON.
func NewMatchProgram(o sdk.Operator, value json.RawMessage) (MatchProgram, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return MatchProgram{}, fmt.Errorf("read the value of %s: %w", o.ID, err)
	}
	p := MatchProgram{Operator: o.ID, Value: compact.Bytes()}
	p.ID = sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", o.ID, o.Version, p.Value))
	return p, nil
}

func (p *MatchProgram) proto(whole bool) *matchv1.Program {
	out := &matchv1.Program{ProgramId: p.ID[:], OperatorId: p.Operator}
	if whole {
		out.ValueJson = p.Value
	}
	return out
}

// Compiled is what a matcher says of a filter value.
type Compiled struct {
	// OK says that the value makes sense.
	OK bool
	// Problems says what is wrong; the pointers are places in the value. There may
	// be warnings about a value that is OK.
	Problems []Diagnostic
	// Reads are properties that the program looks at instead of the filter's own.
	Reads []string
	// Cost is what one test takes, roughly.
	Cost time.Duration
}

// MatchBatch is pairs of filter values and property values to be judged.
type MatchBatch struct {
	// Programs are the filter values, each once, at most 65,536.
	Programs []MatchProgram
	// Values are the property values, each once: any JSON. For a program that
	// reads properties of its own it is the object of those that are there.
	Values []json.RawMessage
	// Pairs are what to judge.
	Pairs []MatchPair
	// Now is the time of the evaluation.
	Now time.Time
}

// MatchPair is indexes into a MatchBatch.
type MatchPair struct{ Program, Value uint32 }

// MatchAnswer is what a matcher says.
type MatchAnswer struct {
	// Verdicts has one for each pair.
	Verdicts []sdk.Verdict
	// Errors says why pairs failed, by pair; not for every one.
	Errors map[int]*sdk.Error
	// DataVersion is the data that was looked at.
	DataVersion string
	// TTL is how long the verdicts may be kept at most; 0 leaves it to the
	// operators.
	TTL time.Duration
}

// compiledFromProto reads an answer to Compile.
func compiledFromProto(out *matchv1.CompileResponse, n int, scrub *scrubber) ([]Compiled, *breach) {
	if len(out.GetResults()) != n {
		return nil, &breach{"result_count", fmt.Sprintf("%d results for %d programs", len(out.GetResults()), n)}
	}
	results := make([]Compiled, n)
	for k, m := range out.GetResults() {
		r := &results[k]
		r.OK, r.Problems = m.GetCompiled(), diagnosticsFromProto(m.GetDiagnostics(), scrub)
		r.Cost = time.Duration(min(m.GetCostNs(), uint64(time.Minute)))
		if !r.OK && len(r.Problems) == 0 {
			return nil, &breach{"no_outcome", "a value was neither compiled nor refused"}
		}
		for _, name := range m.GetReads() {
			if len(name) > 0 && len(name) <= 400 && len(r.Reads) < 100 {
				r.Reads = append(r.Reads, name)
			}
		}
	}
	return results, nil
}

// proto writes a batch; programs that the plugin knows go without their value.
func (b *MatchBatch) proto(instance string, known *knownPrograms) *matchv1.MatchBatchRequest {
	req := &matchv1.MatchBatchRequest{
		InstanceId: instance, NowUs: b.Now.UnixMicro(),
		Programs: make([]*matchv1.Program, len(b.Programs)), Values: make([][]byte, len(b.Values)),
		PairProgram: make([]uint32, len(b.Pairs)), PairValue: make([]uint32, len(b.Pairs)),
	}
	whole := known.lacks(b.Programs)
	for k := range b.Programs {
		req.Programs[k] = b.Programs[k].proto(whole == nil || whole[k])
	}
	for k, v := range b.Values {
		req.Values[k] = v
	}
	for k, p := range b.Pairs {
		req.PairProgram[k], req.PairValue[k] = p.Program, p.Value
	}
	return req
}

// only is the pairs of the given programs, and their places in b.
func (b *MatchBatch) only(programs []uint32) (some *MatchBatch, at []int) {
	wanted := make(map[uint32]bool, len(programs))
	for _, p := range programs {
		wanted[p] = true
	}
	some = &MatchBatch{Programs: b.Programs, Values: b.Values, Now: b.Now}
	for k, pair := range b.Pairs {
		if wanted[pair.Program] {
			some.Pairs = append(some.Pairs, pair)
			at = append(at, k)
		}
	}
	return some, at
}

// answerFromProto reads the verdicts. The answer is nil when there is not one for
// each pair, or a program is asked for that was not sent. A verdict that is none
// is Unknown, and the breach is returned beside the answer.
func answerFromProto(out *matchv1.MatchBatchResponse, b *MatchBatch, scrub *scrubber) (*MatchAnswer, *breach) {
	if len(out.GetVerdicts()) != len(b.Pairs) {
		return nil, &breach{"verdict_count", fmt.Sprintf("%d verdicts for %d pairs", len(out.GetVerdicts()), len(b.Pairs))}
	}
	for _, p := range out.GetNeedPrograms() {
		if int(p) >= len(b.Programs) {
			return nil, &breach{"program_index", fmt.Sprintf("program %d of %d is needed", p, len(b.Programs))}
		}
	}
	answer := &MatchAnswer{
		Verdicts:    make([]sdk.Verdict, len(b.Pairs)),
		DataVersion: clip(out.GetDataVersion(), maxDataVersion), TTL: ttl(out.GetTtl()),
	}
	var broken *breach
	for k, v := range out.GetVerdicts() {
		if v > byte(sdk.Failed) {
			broken = &breach{"verdict", fmt.Sprintf("verdict %d", v)}
			continue
		}
		answer.Verdicts[k] = sdk.Verdict(v)
	}
	for _, e := range out.GetErrors() {
		at, err := int(e.GetPair()), errorFromProto(e.GetError(), scrub)
		if at >= len(b.Pairs) || err == nil || answer.Verdicts[at] != sdk.Failed {
			continue
		}
		if answer.Errors == nil {
			answer.Errors = map[int]*sdk.Error{}
		}
		answer.Errors[at] = err
	}
	return answer, broken
}

// merge takes over verdicts on some of the pairs.
func (a *MatchAnswer) merge(some *MatchAnswer, at []int) {
	for k, place := range at {
		a.Verdicts[place] = some.Verdicts[k]
		if err := some.Errors[k]; err != nil {
			if a.Errors == nil {
				a.Errors = map[int]*sdk.Error{}
			}
			a.Errors[place] = err
		}
	}
	if some.TTL > 0 && (a.TTL == 0 || some.TTL < a.TTL) {
		a.TTL = some.TTL
	}
	if a.DataVersion != some.DataVersion {
		a.DataVersion = "" // of two versions: of none
	}
}

func ttl(d *durationpb.Duration) time.Duration {
	return min(max(0, d.AsDuration()), maxCacheTTL)
}
