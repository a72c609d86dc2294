package tail

import "time"

const (
	// windowTime is for how long after a later row a row is expected to become visible.
	windowTime = 5 * time.Second
	// windowRows bounds the rows that are compared.
	windowRows = 5000
)

// window has the rows that a topic has seen in the last seconds.
type window struct {
	begin int64 // rows up to it are not compared
	seen  []seenRow
}

type seenRow struct {
	row int64
	at  time.Time
}

// start forgets everything and compares rows behind a row.
func (w *window) start(row int64) { w.begin, w.seen = max(0, row), nil }

func (w *window) add(row int64, now time.Time) { w.seen = append(w.seen, seenRow{row, now}) }

// prune removes rows that are too old or beyond windowRows.
func (w *window) prune(now time.Time) {
	n := max(0, len(w.seen)-windowRows)
	for n < len(w.seen) && now.Sub(w.seen[n].at) > windowTime {
		n++
	}
	for _, s := range w.seen[:n] {
		w.begin = max(w.begin, s.row)
	}
	w.seen = append(w.seen[:0], w.seen[n:]...)
}

// missing returns the rows that were not seen.
func (w *window) missing(rows []Row) []Row {
	seen := make(map[int64]bool, len(w.seen))
	for _, s := range w.seen {
		seen[s.row] = true
	}
	var out []Row
	for _, r := range rows {
		if r.ID > w.begin && !seen[r.ID] {
			out = append(out, r)
		}
	}
	return out
}
