package app

import (
	"context"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/app/requestlog"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/erasure"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/replay"
	"github.com/guidonhq/guidon/core/ingestion/trace"
	"github.com/guidonhq/guidon/core/ingestion/warning"
	"github.com/guidonhq/guidon/core/notifications"
	"github.com/guidonhq/guidon/core/persons"
)

// erasureBindings make the deletion of a person reach every package with data of
// persons, and make the pipeline respect it. addHooks has the packages that need
// the transaction of the deletion.
var erasureBindings = fx.Options(
	local(fx.Provide(fx.Annotate(newErasures, fx.OnStart((*erasure.Service).Start), fx.OnStop((*erasure.Service).Stop)))),
	fx.Invoke(respectErasures, func(p *persons.Service, n *notifications.Service, d *db.DB, e *erasure.Service, store *events.Service) {
		p.OnDeleteIDs(n.Erase)
		p.OnDeleteIDs(eraseWarnings(warning.NewStore(d)))
		p.OnErase(deadletter.NewStore(d).Erase)
		p.RecordWith(e)
		store.OnRefused(deadletter.NewStore(d).AddRefused)
	}),
)

func newErasures(d *db.DB, l *requestlog.Log, p *persons.Service, log *zap.Logger) *erasure.Service {
	e := erasure.New(d, l.Journal, p, log)
	if l.Shared != nil {
		e.OnLog(l.Shared)
	}
	return e
}

// eraseWarnings removes the details of warnings that quote distinct ids, or the
// uuid that the person of one has.
func eraseWarnings(w *warning.Store) persons.EraseHook {
	return func(ctx context.Context, projectID int64, distinctIDs []string) (int64, error) {
		texts := make([]string, 0, 2*len(distinctIDs))
		for _, id := range distinctIDs {
			texts = append(texts, id, persons.PersonUUID(projectID, id))
		}
		return w.Erase(ctx, projectID, texts)
	}
}

// respectErasures makes the worker, deliveries, replays and traces respect erasures.
func respectErasures(w *pipeline.Worker, d *delivery.Service, r *replay.Replayer, t *trace.Tracer, e *erasure.Service) {
	w.RespectErasures(e)
	d.RespectErasures(e)
	r.RespectErasures(e)
	t.WithErasures(e)
	e.FollowProgress(w.Processed)
}
