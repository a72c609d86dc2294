package tail

import "github.com/guidonhq/guidon/core/events"

// page chooses how many rows the next read has: twice as many as the last one had, and not
// more than fit into pageBytes if they are as large.
type page struct{ rows int }

func (p *page) limit() int { return max(p.rows, firstPage) }

// read notes the rows of the last read.
func (p *page) read(rows []events.Record) {
	size := 0
	for i := range rows {
		size += len(rows[i].Properties)
	}
	p.rows = min(2*len(rows), pageSize)
	if size > 0 {
		p.rows = min(p.rows, len(rows)*pageBytes/size)
	}
}
