package operators

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// MatchPairs writes one result a pair into results, which comes filled with
// Unknown: one call to each plugin, all at once. What is still unknown at the
// deadline of ctx stays so. Memory is not asked: see Known.
func (o *Operators) MatchPairs(ctx context.Context, now time.Time, pairs []match.Pair, results []match.Result) {
	o.ask(ctx, deciding, now, pairs, results)
}

// inquiry is the questions of one request to one plugin.
type inquiry struct {
	plugin    *plugin
	epoch     uint64
	batch     Batch
	operators []*offer // of the programs
	pairs     []int    // where the questions come from, one for each of batch.Pairs
	arena     []byte   // the texts of programs and values
	*index
}

// index says where programs and values are in a batch. Its memory is used again.
type index struct {
	programs map[[2]uint64]uint32 // by half of their checksum
	values   map[text]uint32
}

var indexes = sync.Pool{New: func() any { return &index{map[[2]uint64]uint32{}, map[text]uint32{}} }}

// mostIndexed bounds the memory that is used again.
const mostIndexed = 4096

// forget gives the index back.
func (q *inquiry) forget() {
	if len(q.programs)+len(q.values) <= mostIndexed {
		clear(q.programs)
		clear(q.values)
		indexes.Put(q.index)
	}
	q.index = nil
}

type text struct {
	kind    match.Kind
	content string
}

func (o *Operators) ask(ctx context.Context, in purpose, now time.Time, pairs []match.Pair, results []match.Result) {
	all := o.sort(now, pairs)
	if len(all) == 0 {
		return
	}
	for _, q := range all {
		q.forget()
	}
	var wg sync.WaitGroup
	for _, q := range all[1:] {
		wg.Go(func() { o.inquire(ctx, in, q, pairs, results) })
	}
	o.inquire(ctx, in, all[0], pairs, results)
	wg.Wait()
}

// sort makes an inquiry for each plugin.
func (o *Operators) sort(now time.Time, pairs []match.Pair) []*inquiry {
	var all []*inquiry
	offers := *o.offers.Load()
	for i := range pairs {
		p := &pairs[i]
		f := offers[operatorOf(p.Program)]
		if f == nil {
			o.meter.unknown("", "unknown_operator", 1)
			continue
		}
		q := inquiryOf(&all, f.plugin, now, len(pairs)-i)
		q.add(i, p, f)
	}
	return all
}

func inquiryOf(all *[]*inquiry, p *plugin, now time.Time, most int) *inquiry {
	for _, q := range *all {
		if q.plugin == p {
			return q
		}
	}
	q := &inquiry{
		plugin: p, epoch: p.epoch.Load(), index: indexes.Get().(*index),
		batch: Batch{Now: now, Programs: make([]Program, 0, min(most, 16)), Values: make([]json.RawMessage, 0, most), Pairs: make([]Pair, 0, most)},
		pairs: make([]int, 0, most), operators: make([]*offer, 0, min(most, 16)), arena: make([]byte, 0, 32*most),
	}
	*all = append(*all, q)
	return q
}

func (q *inquiry) add(at int, p *match.Pair, f *offer) {
	b := &q.batch
	id := [2]uint64{word(p.Program), word(p.Program[8:])}
	n, ok := q.programs[id]
	if !ok {
		n = uint32(len(b.Programs))
		q.programs[id] = n
		start := len(q.arena)
		q.arena = append(q.arena, valueOf(p.Program)...)
		made := Program{Operator: f.ID, Value: q.arena[start:len(q.arena):len(q.arena)]}
		copy(made.ID[:], p.Program)
		b.Programs = append(b.Programs, made)
		q.operators = append(q.operators, f)
	}
	t := text{p.Value.Kind(), p.Value.Content()}
	v, ok := q.values[t]
	if !ok {
		v = uint32(len(b.Values))
		q.values[t] = v
		start := len(q.arena)
		q.arena = p.Value.AppendTo(q.arena)
		b.Values = append(b.Values, json.RawMessage(q.arena[start:len(q.arena):len(q.arena)]))
	}
	b.Pairs = append(b.Pairs, Pair{n, v})
	q.pairs = append(q.pairs, at)
}

// inquire asks one plugin and writes down what it says.
func (o *Operators) inquire(ctx context.Context, in purpose, q *inquiry, pairs []match.Pair, results []match.Result) {
	said, reason := o.lane(q.plugin, in).call(ctx, q.plugin.asked(), &q.batch)
	if reason == "" && len(said.Verdicts) != len(q.pairs) {
		reason = "error"
	}
	o.meter.asked(q.plugin.name, in, len(q.pairs))
	if reason != "" {
		o.meter.unknown(q.plugin.name, reason, len(q.pairs))
		return
	}
	for i, verdict := range said.Verdicts {
		f := q.operators[q.batch.Pairs[i].Program]
		a := answer{plugin: q.plugin, epoch: q.epoch}
		switch verdict {
		case sdk.Match:
			a.result = match.True
		case sdk.NoMatch:
			a.result = match.False
		case sdk.Failed:
			o.meter.unknown(q.plugin.name, "failed", 1)
		default:
			o.meter.unknown(q.plugin.name, "unknown", 1)
			continue
		}
		if f.Purity == sdk.DataDependent {
			if a.data = said.DataVersion; a.data == "" {
				a.data = q.plugin.asked().DataVersion()
			}
		}
		a.until = lasting(&f.Operator, said.TTL, q.batch.Now)
		at := q.pairs[i]
		results[at] = a.result
		o.keep(&pairs[at], a)
	}
}
