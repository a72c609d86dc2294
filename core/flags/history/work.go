package history

import (
	"context"
	"encoding/json"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/sealed"
	"github.com/guidonhq/guidon/core/jsontext"
)

// work is one pass over the history of a flag.
type work struct {
	*Sealer
	project, flag int64
	mark          Mark
	rewrite       func(payload string) (string, error)
	sealedOnly    bool // payloads in clear stay, also in the activity log
	changed       int  // rows, without entries of the activity log
	broken        error
}

// run rewrites everything after mark and advances it.
func (w *work) run(ctx context.Context, mark *Mark) error {
	for _, step := range []func(context.Context, *Mark) (bool, error){w.versions, w.scheduled} {
		for more := true; more; {
			var err error
			if more, err = step(ctx, mark); err != nil {
				return err
			}
		}
	}
	if w.sealedOnly {
		return nil
	}
	return w.entries(ctx, mark)
}

// filters rewrites the payloads of filters.
func (w *work) filters(raw json.RawMessage) (json.RawMessage, bool, error) {
	return sealed.Rewrite(raw, func(_, payload string) (string, error) { return w.rewrite(payload) })
}

// state rewrites the payloads of a version.
func (w *work) state(raw string) (string, bool, error) {
	d, err := document.Parse([]byte(raw))
	if err != nil {
		return raw, false, nil //nolint:nilerr // an unreadable version is never shown
	}
	filters, ok := d.Given("filters")
	if !ok {
		return raw, false, nil
	}
	filters, changed, err := w.filters(filters)
	if err != nil || !changed {
		return raw, false, err
	}
	d.Set("filters", filters)
	return string(d.Raw()), true, nil
}

// operation rewrites the payloads of a scheduled change.
func (w *work) operation(raw string) (string, bool, error) {
	out, changed, err := sealed.RewriteOperation(json.RawMessage(raw), func(_, payload string) (string, error) { return w.rewrite(payload) })
	return string(out), changed, err
}

// redact redacts the payloads in the detail of an entry of the activity log.
func redact(raw string) (string, bool) {
	var d activity.Detail
	if json.Unmarshal([]byte(raw), &d) != nil {
		return raw, false
	}
	found := false
	for i := range d.Changes {
		c := &d.Changes[i]
		if c.Field != "filters" {
			continue
		}
		for _, side := range []*json.RawMessage{&c.Before, &c.After} {
			if hidden, changed := sealed.Hide(*side); changed {
				*side, found = hidden, true
			}
		}
	}
	if !found {
		return raw, false
	}
	out, err := jsontext.Marshal(d)
	if err != nil {
		return raw, false
	}
	return string(out), true
}
