package events

import "context"

func (s store) Export(ctx context.Context, projectID int64, x ExportQuery, limit int) ([]Record, error) {
	q := s.selectFrom(ctx, s.tableFor(&Filter{Event: x.Event})).Where("e.project_id = ?", projectID)
	if x.Event != "" {
		q = q.Where("e.event = ?", x.Event)
	}
	if !x.Since.IsZero() {
		q = q.Where("e.timestamp >= ?", x.Since.UnixMicro())
	}
	if !x.Until.IsZero() {
		q = q.Where("e.timestamp < ?", x.Until.UnixMicro())
	}
	if x.Through != 0 {
		q = q.Where("e.id <= ?", x.Through)
	}
	if x.After != (Cursor{}) {
		// The first condition is one that an index of timestamps begins with.
		q = q.Where("e.timestamp >= ?", x.After.Timestamp).Where("(e.timestamp, e.id) > (?, ?)", x.After.Timestamp, x.After.Row)
	}
	var out []Record
	if err := q.OrderExpr("e.timestamp, e.id").Limit(int64(limit)).Scan(ctx, &out); err != nil {
		return nil, err
	}
	return out, s.plain(ctx, out)
}
