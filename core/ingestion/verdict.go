package ingestion

import (
	"github.com/guidonhq/guidon/core/ingestion/event"
	"sync"
)

// Verdict says what will become of one item of a request, as far as the item
// alone decides it.
type Verdict struct {
	Result string `json:"result"`            // ok, warning (kept, with a change) or drop
	Detail string `json:"details,omitempty"` // the kind of the notice, empty for ok
}

// decoders are for judging requests while their clients wait.
type decoders struct{ pool sync.Pool }

func newDecoders(limits event.Limits) *decoders {
	return &decoders{sync.Pool{New: func() any { return &judge{decoder: event.NewDecoder(limits)} }}}
}

type judge struct {
	decoder *event.Decoder
	decoded event.Decoded
}

// judge decodes a record the way the worker will, and returns a verdict for
// each of its items.
func (d *decoders) judge(rec *event.Record) []Verdict {
	j := d.pool.Get().(*judge)
	defer d.pool.Put(j)
	j.decoded = event.Decoded{}
	j.decoder.Decode(rec, &j.decoded)
	out := make([]Verdict, j.decoded.Items)
	for i := range out {
		out[i].Result = "ok"
	}
	for _, n := range j.decoded.Notices {
		if int(n.Index) >= len(out) {
			continue
		}
		v := &out[n.Index]
		switch {
		case n.Dropped:
			*v = Verdict{"drop", n.Kind}
		case v.Result == "ok":
			*v = Verdict{"warning", n.Kind}
		}
	}
	return out
}
