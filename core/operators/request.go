package operators

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// MatchPairs writes a result for each pair into results, which the caller fills with
// Unknown. It makes one call to each plugin, all concurrently. Pairs without an answer
// at the deadline of ctx stay Unknown. It does not read the cache: see Known.
func (o *Operators) MatchPairs(ctx context.Context, now time.Time, pairs []match.Pair, results []match.Result) {
	o.matchPairs(ctx, forDecide, now, pairs, results)
}

// batchRequest is the part of a request for one plugin.
type batchRequest struct {
	plugin    *plugin
	epoch     uint64
	batch     wire.MatchBatch
	operators []*indexedOperator // of the programs
	pairs     []int              // the index in the request for each of batch.Pairs
	arena     []byte             // the bytes of programs and values
	failed    string             // why there is no answer
	*batchIndex
}

// batchIndex finds programs and values in a batch. It is pooled.
type batchIndex struct {
	programs map[[2]uint64]uint32 // by half of the checksum
	values   map[valueKey]uint32
}

type valueKey struct {
	kind    match.Kind
	content string
}

var batchIndexes = sync.Pool{New: func() any { return &batchIndex{map[[2]uint64]uint32{}, map[valueKey]uint32{}} }}

// maxPooledEntries limits the memory of a pooled batchIndex.
const maxPooledEntries = 4096

// releaseIndex returns the index to the pool.
func (q *batchRequest) releaseIndex() {
	if len(q.programs)+len(q.values) <= maxPooledEntries {
		clear(q.programs)
		clear(q.values)
		batchIndexes.Put(q.batchIndex)
	}
	q.batchIndex = nil
}

// matchPairs is MatchPairs. It returns the plugin and the reason of a call without an
// answer, "" if all were answered.
func (o *Operators) matchPairs(ctx context.Context, in purpose, now time.Time, pairs []match.Pair, results []match.Result) (unanswered string) {
	requests, unknown := o.splitByPlugin(now, pairs)
	if unknown {
		unanswered = "an operator is gone"
	}
	if len(requests) == 0 {
		return unanswered
	}
	for _, q := range requests {
		q.releaseIndex()
	}
	var wg sync.WaitGroup
	for _, q := range requests[1:] {
		wg.Go(func() { o.send(ctx, in, q, pairs, results) })
	}
	o.send(ctx, in, requests[0], pairs, results)
	wg.Wait()
	for _, q := range requests {
		if q.failed != "" {
			unanswered = q.plugin.name + ": " + q.failed
		}
	}
	return unanswered
}

// splitByPlugin returns a request for each plugin. unknown is true if no plugin has the
// operator of a pair.
func (o *Operators) splitByPlugin(now time.Time, pairs []match.Pair) (all []*batchRequest, unknown bool) {
	index := *o.index.Load()
	for i := range pairs {
		p := &pairs[i]
		op := index[operatorOf(p.Program)]
		if op == nil {
			o.meter.addUnknown("", "unknown_operator", 1)
			unknown = true
			continue
		}
		requestFor(&all, op.plugin, now, len(pairs)-i).add(i, p, op)
	}
	return all, unknown
}

func requestFor(all *[]*batchRequest, p *plugin, now time.Time, most int) *batchRequest {
	for _, q := range *all {
		if q.plugin == p {
			return q
		}
	}
	q := &batchRequest{
		plugin: p, epoch: p.epoch.Load(), batchIndex: batchIndexes.Get().(*batchIndex),
		batch: wire.MatchBatch{
			Now: now, Programs: make([]wire.MatchProgram, 0, min(most, 16)), Values: make([]json.RawMessage, 0, most), Pairs: make([]wire.MatchPair, 0, most),
		},
		pairs: make([]int, 0, most), operators: make([]*indexedOperator, 0, min(most, 16)), arena: make([]byte, 0, 32*most),
	}
	*all = append(*all, q)
	return q
}

// add adds the pair at an index of the request.
func (q *batchRequest) add(at int, p *match.Pair, op *indexedOperator) {
	b := &q.batch
	id := [2]uint64{word(p.Program), word(p.Program[8:])}
	n, ok := q.programs[id]
	if !ok {
		n = uint32(len(b.Programs))
		q.programs[id] = n
		start := len(q.arena)
		q.arena = append(q.arena, valueOf(p.Program)...)
		program := wire.MatchProgram{Operator: op.ID, Value: q.arena[start:len(q.arena):len(q.arena)]}
		copy(program.ID[:], p.Program)
		b.Programs = append(b.Programs, program)
		q.operators = append(q.operators, op)
	}
	key := valueKey{p.Value.Kind(), p.Value.Content()}
	v, ok := q.values[key]
	if !ok {
		v = uint32(len(b.Values))
		q.values[key] = v
		start := len(q.arena)
		q.arena = p.Value.AppendTo(q.arena)
		b.Values = append(b.Values, json.RawMessage(q.arena[start:len(q.arena):len(q.arena)]))
	}
	b.Pairs = append(b.Pairs, wire.MatchPair{Program: n, Value: v})
	q.pairs = append(q.pairs, at)
}

// send calls one plugin, and writes and caches its verdicts.
func (o *Operators) send(ctx context.Context, in purpose, q *batchRequest, pairs []match.Pair, results []match.Result) {
	answer, reason := q.plugin.limiter(in).call(ctx, q.plugin.current(), &q.batch)
	if reason == "" && len(answer.Verdicts) != len(q.pairs) {
		reason = "error"
	}
	o.meter.addCall(q.plugin.name, in, len(q.pairs))
	if q.failed = reason; reason != "" {
		o.meter.addUnknown(q.plugin.name, reason, len(q.pairs))
		return
	}
	late := ctx.Err() != nil
	for i, verdict := range answer.Verdicts {
		op := q.operators[q.batch.Pairs[i].Program]
		a := cachedResult{plugin: q.plugin, epoch: q.epoch}
		switch verdict {
		case sdk.Match:
			a.result = match.True
		case sdk.NoMatch:
			a.result = match.False
		case sdk.Failed:
			o.meter.addUnknown(q.plugin.name, "failed", 1)
		default:
			o.meter.addUnknown(q.plugin.name, "unknown", 1)
			if late {
				q.failed = "timeout"
			}
			continue
		}
		if op.Purity == sdk.DataDependent {
			if a.data = answer.DataVersion; a.data == "" {
				a.data = q.plugin.current().DataVersion()
			}
		}
		a.until = validUntil(&op.Operator, answer.TTL, q.batch.Now)
		at := q.pairs[i]
		results[at] = a.result
		o.cacheResult(&pairs[at], a)
	}
}
