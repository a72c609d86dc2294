package delivery

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// pauseStore keeps which sinks are paused.
type pauseStore struct{ db *db.DB }

// pauseRow is a row of sink_pauses.
type pauseRow struct {
	bun.BaseModel `bun:"table:sink_pauses,alias:p"`

	Sink     string `bun:",pk"`
	PausedAt db.Time
	Reason   string
}

// load returns the pause of a sink, nil when it is not paused.
func (s *pauseStore) load(ctx context.Context, sink string) (*Pause, error) {
	var row pauseRow
	err := s.db.Read(ctx).NewSelect().Model(&row).Where("sink = ?", sink).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pause of sink %s: %w", sink, err)
	}
	return &Pause{At: row.PausedAt.Time, Reason: row.Reason}, nil
}

// save writes the pause of a sink; nil deletes it.
func (s *pauseStore) save(ctx context.Context, sink string, p *Pause) error {
	var err error
	if p == nil {
		_, err = s.db.Write(ctx).NewDelete().Model((*pauseRow)(nil)).Where("sink = ?", sink).Exec(ctx)
	} else {
		row := pauseRow{Sink: sink, PausedAt: db.At(p.At), Reason: p.Reason}
		_, err = s.db.Write(ctx).NewInsert().Model(&row).On("CONFLICT (sink) DO UPDATE").
			Set("paused_at = EXCLUDED.paused_at").Set("reason = EXCLUDED.reason").Returning("NULL").Exec(ctx)
	}
	if err != nil {
		return fmt.Errorf("write the pause of sink %s: %w", sink, err)
	}
	return nil
}
