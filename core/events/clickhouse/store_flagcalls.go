package clickhouse

import (
	"context"
	"fmt"

	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
	"github.com/guidonhq/guidon/core/events/flagcalls"
)

var _ flagcalls.Backend = (*Store)(nil)

// FlagCalls implements flagcalls.Backend. One query reads all keys, so that each of them had
// the whole time if it ends. The counts come key by key.
func (s *Store) FlagCalls(ctx context.Context, q *flagcalls.Query, fn flagcalls.Visit) error {
	keys := flagcalls.NewByKey(q, fn)
	without, err := s.readTable(ctx, q.ProjectID)
	if err != nil {
		if ctx.Err() != nil {
			keys.End(false)
		}
		return err
	}
	err = s.client.Query(ctx, fmt.Sprintf("SELECT flag_key, intDiv(timestamp - %d, %d) AS i, flag_response, toInt64(count()) FROM %s"+
		" WHERE project_id = %d AND event = %s AND timestamp >= %d AND timestamp < %d AND flag_key IN (%s)%s GROUP BY flag_key, i, flag_response ORDER BY flag_key LIMIT %d BY flag_key",
		q.From.UnixMicro(), q.Width.Microseconds(), eventTable, q.ProjectID, wire.Quote(flagcalls.Event), q.From.UnixMicro(), q.To.UnixMicro(), wire.QuoteAll(q.Keys), without, flagcalls.MaxCounts+1),
		func(r *wire.Reader) error {
			key, c := r.String(), flagcalls.Count{Interval: r.Int(), Response: r.String(), Calls: r.Int()}
			if r.Err == nil {
				keys.Add(key, c)
			}
			return r.Err
		})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("count calls of flags: %w", err)
	}
	keys.End(err == nil)
	return err
}
