package capture

import (
	"sync"

	"github.com/guidonhq/guidon/core/ingestion/event"
)

// Result is the outcome of one item of a request, as far as the item alone
// decides it.
type Result struct {
	Result string `json:"result"`            // ok, warning (kept, with a change) or drop
	Detail string `json:"details,omitempty"` // the kind of the notice, empty for ok
}

// validatorPool holds decoders for requests whose clients wait for results.
type validatorPool struct{ pool sync.Pool }

func newValidatorPool(limits event.Limits) *validatorPool {
	return &validatorPool{sync.Pool{New: func() any { return &validator{decoder: event.NewDecoder(limits)} }}}
}

type validator struct {
	decoder *event.Decoder
	decoded event.Decoded
}

// validate decodes a record as the pipeline will, and returns the result of each
// item.
func (p *validatorPool) validate(rec *event.Record) []Result {
	v := p.pool.Get().(*validator)
	defer p.pool.Put(v)
	v.decoded = event.Decoded{}
	v.decoder.Decode(rec, &v.decoded)
	out := make([]Result, v.decoded.Items)
	for i := range out {
		out[i].Result = "ok"
	}
	for _, n := range v.decoded.Notices {
		if int(n.Index) >= len(out) {
			continue
		}
		r := &out[n.Index]
		switch {
		case n.Dropped:
			*r = Result{"drop", n.Kind}
		case r.Result == "ok":
			*r = Result{"warning", n.Kind}
		}
	}
	return out
}
