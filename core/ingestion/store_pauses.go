package ingestion

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// pause returns why and since when a sink is paused; nil when it is not.
func (s *store) pause(ctx context.Context, sink string) (*Pause, error) {
	var row struct {
		PausedAt int64
		Reason   string
	}
	err := s.db.Read(ctx).NewRaw("SELECT paused_at, reason FROM sink_pauses WHERE sink = ?", sink).Scan(ctx, &row)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read pause of sink %s: %w", sink, err)
	}
	return &Pause{At: time.UnixMicro(row.PausedAt).UTC(), Reason: row.Reason}, nil
}

// setPause remembers that a sink is paused, or with nil that it is not.
func (s *store) setPause(ctx context.Context, sink string, p *Pause) error {
	var err error
	if p == nil {
		_, err = s.db.Write(ctx).NewRaw("DELETE FROM sink_pauses WHERE sink = ?", sink).Exec(ctx)
	} else {
		_, err = s.db.Write(ctx).NewRaw(`INSERT INTO sink_pauses (sink, paused_at, reason) VALUES (?, ?, ?)
			ON CONFLICT (sink) DO UPDATE SET paused_at = excluded.paused_at, reason = excluded.reason`,
			sink, p.At.UnixMicro(), p.Reason).Exec(ctx)
	}
	if err != nil {
		return fmt.Errorf("keep pause of sink %s: %w", sink, err)
	}
	return nil
}
