package event

import (
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// chains writes the element chains of events that bring a list of elements.
type chains struct {
	build  match.ChainBuilder
	source []byte
	text   []byte
}

// elements gives the event its element chain: the one it was sent with, or
// else the one that its list of elements makes. It returns the properties
// that the event does not keep because of that, which are both; what can be
// read as neither stays where it is.
func (d *Decoder) elements(p *properties, event *sdk.Event) (out uint32) {
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
