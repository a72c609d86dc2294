package pause

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// Store keeps which sinks are paused.
type Store struct{ db *db.DB }

// NewStore returns the pauses of a database.
func NewStore(d *db.DB) *Store { return &Store{d} }

// row is a row of sink_pauses.
type row struct {
	bun.BaseModel `bun:"table:sink_pauses,alias:p"`

	Sink     string `bun:",pk"`
	PausedAt db.Time
	Reason   string
}

// Load returns the pause of a sink, nil when it is not paused.
func (s *Store) Load(ctx context.Context, sink string) (*Pause, error) {
	var r row
	err := s.db.Read(ctx).NewSelect().Model(&r).Where("sink = ?", sink).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pause of sink %s: %w", sink, err)
	}
	return &Pause{At: r.PausedAt.Time, Reason: r.Reason}, nil
}

// all returns the pauses of all sinks.
func (s *Store) all(ctx context.Context) (map[string]*Pause, error) {
	var rows []row
	if err := s.db.Read(ctx).NewSelect().Model(&rows).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the pauses of sinks: %w", err)
	}
	out := make(map[string]*Pause, len(rows))
	for _, r := range rows {
		out[r.Sink] = &Pause{At: r.PausedAt.Time, Reason: r.Reason}
	}
	return out, nil
}

// Save writes the pause of a sink; nil deletes it.
func (s *Store) Save(ctx context.Context, sink string, p *Pause) error {
	var err error
	if p == nil {
		_, err = s.db.Write(ctx).NewDelete().Model((*row)(nil)).Where("sink = ?", sink).Exec(ctx)
	} else {
		r := row{Sink: sink, PausedAt: db.At(p.At), Reason: p.Reason}
		_, err = s.db.Write(ctx).NewInsert().Model(&r).On("CONFLICT (sink) DO UPDATE").
			Set("paused_at = EXCLUDED.paused_at").Set("reason = EXCLUDED.reason").Returning("NULL").Exec(ctx)
	}
	if err != nil {
		return fmt.Errorf("write the pause of sink %s: %w", sink, err)
	}
	return nil
}
