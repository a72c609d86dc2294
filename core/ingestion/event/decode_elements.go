package event

import (
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// chainWriter writes the element chains of events that carry a list of elements.
type chainWriter struct {
	build  match.ChainBuilder
	source []byte
	text   []byte
}

// setElementsChain sets the element chain of the event: the one it was sent with,
// else the one of its list of elements. It returns the properties to remove, which
// are both; a value of another type stays a property.
func (d *Decoder) setElementsChain(p *properties, event *sdk.Event) (out uint32) {
	if chain := p.val[propElementsChain]; chain != nil && (chain[0] == '"' || chain[0] == 'n') {
		event.ElementsChain = PlainText(chain)
		out |= 1 << propElementsChain
	}
	switch list := p.val[propElements]; {
	case list == nil:
	case list[0] == 'n', list[0] == '[' && event.ElementsChain != "":
		out |= 1 << propElements
	case list[0] == '[':
		if p.dirty {
			d.chains.source = jsontext.AppendClean(d.chains.source[:0], list)
			list = d.chains.source
		}
		var ok bool
		if d.chains.text, ok = d.chains.build.Append(d.chains.text[:0], list); ok {
			event.ElementsChain = string(d.chains.text)
			out |= 1 << propElements
		}
	}
	return out
}
