package pause

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/retry"
)

// followInterval is the time between two reads of the pauses that other nodes set.
const followInterval = time.Second

// Change sets or ends (nil) the pause of a sink in the database and in g. A sink that is
// paused already keeps its first pause.
func (s *Store) Change(ctx context.Context, sink string, g *Gate, p *Pause) error {
	stored, err := s.Load(ctx, sink)
	if err != nil {
		return err
	}
	if (stored == nil) != (p == nil) {
		if err := s.Save(ctx, sink, p); err != nil {
			return err
		}
		stored = p
	}
	g.Set(stored)
	return nil
}

// Follow makes gates, by the names of their sinks, follow the pauses in the database
// until ctx ends, and saves those that could not be saved. SQLite has one server: there
// it returns at once.
func (s *Store) Follow(ctx context.Context, gates func() map[string]*Gate) {
	for s.db.Postgres() && retry.Sleep(ctx, followInterval) {
		_ = s.follow(ctx, gates()) // the next one tries again
	}
}

func (s *Store) follow(ctx context.Context, gates map[string]*Gate) error {
	before := make(map[string]state, len(gates))
	for sink, g := range gates {
		before[sink] = g.state()
	}
	stored, err := s.all(ctx)
	if err != nil {
		return err
	}
	for sink, g := range gates {
		was := before[sink]
		switch p := stored[sink]; {
		case !was.known: // the delivery reads it first
		case was.unsaved && p == nil:
			if err := s.Save(ctx, sink, was.pause); err != nil {
				return err
			}
			g.setSince(was, was.pause)
		case was.unsaved, (p == nil) != (was.pause == nil):
			g.setSince(was, p)
		}
	}
	return nil
}
