package warning

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/text"
)

type collectorKey struct{}

// Add adds a warning to the collector of ctx. It is written if and when the
// batch of the collector is. Without a collector the warning is dropped. A
// stage calls Add from the goroutine it runs on.
func Add(ctx context.Context, w Warning) {
	if c, ok := ctx.Value(collectorKey{}).(*Collector); ok {
		c.add(w)
	}
}

// maxKey bounds the characters of a key.
const maxKey = event.MaxChars

// Collector gathers the warnings of one batch into rows. It is for one
// goroutine.
type Collector struct {
	now  time.Time
	rows map[rowKey]*row
	keys *HourlyKeys
}

type rowKey struct {
	project   int64
	kind, key string
}

// NewCollector returns an empty collector. Its warnings are seen now.
func NewCollector(keys *HourlyKeys, now time.Time) *Collector {
	return &Collector{now: now, keys: keys}
}

// Attach returns a context whose warnings go to c.
func (c *Collector) Attach(ctx context.Context) context.Context {
	return context.WithValue(ctx, collectorKey{}, c)
}

func (c *Collector) add(w Warning) {
	k := rowKey{w.ProjectID, w.Type, text.TruncateChars(w.Key, maxKey)}
	if !c.keys.allow(k, c.now) {
		k.key = otherKeys
	}
	w.Key = k.key
	r := c.rows[k]
	if r == nil {
		r = newRow(w, 0, c.now)
		if c.rows == nil {
			c.rows = make(map[rowKey]*row)
		}
		c.rows[k] = r
	}
	r.Count += 1 + int64(w.more)
	r.EventUUID, r.Details = w.EventUUID, detailsJSON(w.Details)
}

// AddNotice adds a notice of the decoder, unless it is quiet.
func (c *Collector) AddNotice(projectID int64, n *event.Notice) {
	if n.Quiet() {
		return
	}
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
	c.add(Warning{
		ProjectID: projectID, Type: n.Kind, Key: n.EventName, Dropped: n.Dropped, EventUUID: n.EventUUID, Details: details, more: n.More,
	})
}

// Save writes the rows in an order that all nodes share, so that their
// transactions do not deadlock.
func (c *Collector) Save(ctx context.Context, s *Store) error {
	rows := make([]*row, 0, len(c.rows))
	for _, r := range c.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.ProjectID, b.ProjectID), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Key, b.Key))
	})
	for _, r := range rows {
		if err := s.add(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// maxHourlyKeys bounds the keys of all types that a project has in an hour.
const maxHourlyKeys = 1000

// otherKeys stands for all keys beyond maxHourlyKeys.
const otherKeys = "(other)"

// HourlyKeys bounds the keys of each project in an hour. It is for one
// goroutine. The zero value is ready to use.
type HourlyKeys struct {
	hour int64
	seen map[int64]map[rowKey]struct{}
}

// allow reports whether the key is among the first of its project this hour.
func (h *HourlyKeys) allow(k rowKey, now time.Time) bool {
	if hour := now.Unix() / 3600; hour != h.hour || h.seen == nil {
		h.hour, h.seen = hour, make(map[int64]map[rowKey]struct{})
	}
	keys := h.seen[k.project]
	if keys == nil {
		keys = make(map[rowKey]struct{})
		h.seen[k.project] = keys
	}
	if _, ok := keys[k]; ok {
		return true
	}
	if len(keys) >= maxHourlyKeys {
		return false
	}
	keys[k] = struct{}{}
	return true
}
