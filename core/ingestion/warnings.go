package ingestion

import (
	"cmp"
	"context"
	"encoding/json"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"slices"
	"time"
)

// Warning tells the people of a project that an event had less effect than it
// asked for, or none. Warnings are sampled: of one type and key an hour keeps a
// count and the latest case.
type Warning struct {
	ProjectID int64
	Type      string
	// Key tells cases of one type apart, such as the name of the event. A
	// project has a limited number of them an hour; what is beyond is counted
	// together.
	Key       string
	Dropped   bool // the event was not ingested
	EventUUID string
	Details   map[string]any // encodes as a JSON object

	more uint32 // further cases of it
}

type collectorKey struct{}

// Warn adds a warning to the worker's batch whose context ctx is: it is written
// if and when the batch is. Any other context drops it. A stage calls it from
// the goroutine it runs on.
func Warn(ctx context.Context, w Warning) {
	if c, ok := ctx.Value(collectorKey{}).(*collector); ok {
		c.add(w)
	}
}

// keysAnHour is how many keys of all types a project has in an hour.
const keysAnHour = 1000

// otherKeys stands for all keys beyond.
const otherKeys = "(other)"

// collector gathers the warnings of a batch into rows.
type collector struct {
	now  time.Time
	rows map[warningKey]*warningRow
	keys *hourlyKeys
}

type warningKey struct {
	project   int64
	kind, key string
}

func newCollector(keys *hourlyKeys, now time.Time) *collector {
	return &collector{now: now, keys: keys}
}

func (c *collector) add(w Warning) {
	k := warningKey{w.ProjectID, w.Type, event.FirstChars(w.Key, event.MaxChars)}
	if !c.keys.allow(k, c.now) {
		k.key = otherKeys
	}
	row := c.rows[k]
	if row == nil {
		row = &warningRow{
			ProjectID: k.project, Type: k.kind, Key: k.key, Hour: c.now.Unix() / 3600, Dropped: w.Dropped,
			FirstAt: c.now.UnixMicro(), LastAt: c.now.UnixMicro(),
		}
		if c.rows == nil {
			c.rows = make(map[warningKey]*warningRow)
		}
		c.rows[k] = row
	}
	row.Count += 1 + int64(w.more)
	row.EventUUID, row.Details = w.EventUUID, detailsJSON(w.Details)
}

// save writes the rows in an order that all nodes share.
func (c *collector) save(ctx context.Context, s *store) error {
	rows := make([]*warningRow, 0, len(c.rows))
	for _, r := range c.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *warningRow) int {
		return cmp.Or(cmp.Compare(a.ProjectID, b.ProjectID), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Key, b.Key))
	})
	for _, r := range rows {
		if err := s.addWarning(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// maxDetails is how many bytes of details are kept.
const maxDetails = 8 << 10

// detailsJSON encodes details; too much, or what cannot be encoded, is left out.
func detailsJSON(details map[string]any) string {
	if len(details) == 0 {
		return "{}"
	}
	data, err := json.Marshal(details)
	if err != nil || len(data) > maxDetails {
		return "{}"
	}
	return string(data)
}

// warning turns a notice into a warning.
func (n *said) warning() Warning {
	details := make(map[string]any, len(n.Detail)+3)
	for k, v := range n.Detail {
		details[k] = v
	}
	details["index"] = n.Index
	for name, v := range map[string]string{"eventName": n.EventName, "eventUuid": n.EventUUID, "distinctId": n.DistinctID} {
		if v != "" {
			details[name] = v
		}
	}
	return Warning{
		ProjectID: n.project, Type: n.Kind, Key: n.EventName, Dropped: n.Dropped, EventUUID: n.EventUUID, Details: details, more: n.More,
	}
}

// hourlyKeys bounds how many keys a project has in an hour. It is used by one
// goroutine.
type hourlyKeys struct {
	hour int64
	seen map[int64]map[warningKey]struct{}
}

// allow reports whether the key is one of those the project has this hour.
func (h *hourlyKeys) allow(k warningKey, now time.Time) bool {
	if hour := now.Unix() / 3600; hour != h.hour || h.seen == nil {
		h.hour, h.seen = hour, make(map[int64]map[warningKey]struct{})
	}
	keys := h.seen[k.project]
	if keys == nil {
		keys = make(map[warningKey]struct{})
		h.seen[k.project] = keys
	}
	if _, ok := keys[k]; ok {
		return true
	}
	if len(keys) >= keysAnHour {
		return false
	}
	keys[k] = struct{}{}
	return true
}
