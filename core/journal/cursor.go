package journal

import "context"

const maxReaderName = 200

// Register makes or resumes a durable cursor; see Journal.
func (j *store) Register(ctx context.Context, reader string, from Start) (Position, error) {
	if reader == "" || len(reader) > maxReaderName {
		return Position{}, errReaderName
	}
	var at Position
	err := j.submit(ctx, job{check: func(g *group) error {
		if c, ok := g.reader(reader); ok {
			at = c.position
			return nil
		}
		at = Position{Seq: g.extent.first - 1}
		if from == End {
			at.Seq = g.extent.last
		}
		g.set(reader, cursor{position: at})
		return nil
	}}, false)
	if err != nil {
		return Position{}, err
	}
	return at, nil
}

// Commit moves a cursor forward; see Journal.
func (j *store) Commit(ctx context.Context, reader string, p Position) error {
	return j.submit(ctx, job{check: func(g *group) error {
		c, ok := g.reader(reader)
		switch {
		case !ok:
			return errNoReader
		case p.Before(c.position) || p.Count < c.position.Count:
			return errBackwards
		case p.Seq > g.extent.last || p.Seq == g.extent.last && p.Index > 0:
			return errAhead
		case p != c.position:
			c.position = p
			g.set(reader, c)
		}
		return nil
	}}, true)
}

// Unregister forgets a cursor; see Journal.
func (j *store) Unregister(ctx context.Context, reader string) error {
	return j.submit(ctx, job{check: func(g *group) error {
		if _, ok := g.reader(reader); ok {
			g.remove(reader)
		}
		return nil
	}}, false)
}
