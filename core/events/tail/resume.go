package tail

import (
	"context"

	"github.com/guidonhq/guidon/core/events"
)

const (
	resumePage = 100 // rows of one read for a client that reconnects
	repeatRows = 200 // rows of a project before the position of a client that are sent again
)

// join adds viewers. One that reconnects gets what it has missed.
func (h *Hub) join(ctx context.Context, t *topic) error {
	h.mu.Lock()
	joining := t.joining
	h.mu.Unlock()
	for _, v := range joining {
		missed, ok, err := h.missed(ctx, t, v)
		if err != nil {
			return err
		}
		h.welcome(t, v, ok)
		if len(missed) > 0 {
			h.metrics.offered(v.resumeWith(ctx, missed, t.position, h.view))
		}
		v.reach(t.position)
	}
	return nil
}

// missed returns what a viewer has missed up to the position, false if that is more than
// pageSize rows or pageBytes. Behind it are rows that may have become visible late.
func (h *Hub) missed(ctx context.Context, t *topic, v *viewer) ([]message, bool, error) {
	switch {
	case v.resume < 0:
		return nil, true, nil
	case v.resume > t.position || t.position-v.resume > maxResume:
		return nil, false, nil
	}
	rows, complete, err := h.read(ctx, t.project, v.resume, t.position, pageSize)
	if err != nil || !complete {
		return nil, false, err
	}
	late, err := h.repeated(ctx, t.project, v.resume)
	if err != nil {
		return nil, false, err
	}
	rows = append(rows, late...)
	if err := h.addPersons(ctx, []*viewer{v}, rows); err != nil {
		return nil, false, err
	}
	list := make([]message, len(rows))
	for i := range rows {
		list[i] = message{record: &rows[i], id: rows[i].ID}
		if rows[i].ID <= v.resume {
			list[i].id = t.position
		}
	}
	return list, true, nil
}

// repeated returns the last rows up to the position of a client, of a store in which rows
// become visible late: the client may have missed one of them. It has seen the others, and
// knows them by their uuid.
func (h *Hub) repeated(ctx context.Context, project, resume int64) ([]events.Record, error) {
	newest, err := h.source.RowsBetween(ctx, project, max(0, resume-firstWindow), resume, repeatRows)
	if err != nil || len(newest) == 0 {
		return nil, err
	}
	first := resume
	for _, r := range newest {
		first = min(first, r.ID)
	}
	rows, _, err := h.read(ctx, project, first-1, resume, repeatRows+1)
	return rows, err
}

// read returns the events of a project with rows in (after, through], in pages that follow
// their size. It returns false, and those read so far, for limit rows or pageBytes.
func (h *Hub) read(ctx context.Context, project, after, through int64, limit int) (out []events.Record, complete bool, err error) {
	var p page
	for size := 0; after < through; {
		n := min(p.limit(), resumePage)
		rows, err := h.source.RecordsAfter(ctx, project, after, n)
		if err != nil {
			return nil, false, err
		}
		p.read(rows)
		for i := range rows {
			if rows[i].ID > through {
				return out, true, nil
			}
			if size += len(rows[i].Properties); len(out)+1 >= limit || size > pageBytes {
				return out, false, nil
			}
			out = append(out, rows[i])
		}
		if len(rows) < n {
			break
		}
		after = rows[len(rows)-1].ID
	}
	return out, true, nil
}

// welcome moves a viewer from those that join to those that watch.
func (h *Hub) welcome(t *topic, v *viewer, resumed bool) {
	position := t.position
	if v.resume >= 0 && resumed {
		position = v.resume
	}
	v.reach(position)
	v.say(appendReady(nil, position))
	if !resumed {
		v.say(appendReset(nil, t.position))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t.joining = t.joining[1:]
	if !v.hasEnded() {
		t.viewers[v] = struct{}{}
	}
}
