package local

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/match"
)

// instantOf gives the date of a filter as an instant in UTC. Clients read a date
// without a zone in the zone of their process, a year as a day of it, and a number
// as milliseconds. Relative dates stay: all clients read them alike.
func instantOf(p *document.Object) {
	raw, _ := p.Get("operator")
	if name, _ := document.Text(raw); match.FormOf(name) != match.DateForm {
		return
	}
	value, _ := p.Get("value")
	at, ok := match.Instant(value)
	if at = at.UTC(); !ok || at.Year() < 1 || at.Year() > 9999 {
		return
	}
	layout := time.RFC3339
	if at.Nanosecond() != 0 {
		layout = "2006-01-02T15:04:05.000000Z07:00"
	}
	p.Set("value", document.Quote(at.Format(layout)))
}

// exportedTree converts the tree of a cohort for clients: the words AND and OR in
// upper case, because clients compare them so, and dates as instants. Parts that
// cannot be parsed stay.
func exportedTree(raw json.RawMessage) json.RawMessage {
	d, err := document.Parse(raw)
	if err != nil {
		return raw
	}
	values, isGroup := d.Get("values")
	if !isGroup {
		instantOf(d)
		return d.Raw()
	}
	kind, _ := d.Get("type")
	if word, ok := document.Text(kind); ok {
		d.Set("type", document.Quote(strings.ToUpper(word)))
	}
	if list, err := document.ParseList(values); err == nil {
		for i := range list {
			list[i] = exportedTree(list[i])
		}
		d.Set("values", document.JoinList(list))
	}
	return d.Raw()
}
