package admin

import (
	"context"

	"github.com/guidonhq/guidon/core/ingestion/pipeline"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/web"
)

// Readiness registers the checks and fields of GET /_readiness.
type Readiness struct {
	journal journal.Journal
	host    *host.Host
	worker  *pipeline.Worker
}

var _ web.Routes = (*Readiness)(nil)

// NewReadiness returns the checks of the journal, the required plugins and the
// progress of processing.
func NewReadiness(j journal.Journal, h *host.Host, w *pipeline.Worker) *Readiness {
	return &Readiness{journal: j, host: h, worker: w}
}

// Routes registers the checks.
func (r *Readiness) Routes(g *web.Router) {
	g.Check("journal", r.checkJournal)
	g.Check("plugins", func(context.Context) error { return r.host.Ready() })
	g.ReadinessField("ingestion", func() any { return progress{r.worker.Progress(), r.worker.HistoricalProgress()} })
}

// progress is the progress of processing, for events sent as they happen and
// for imports.
type progress struct {
	Live       pipeline.Progress `json:"live"`
	Historical pipeline.Progress `json:"historical"`
}

func (r *Readiness) checkJournal(ctx context.Context) error {
	stats, err := r.journal.Stats(ctx)
	if err != nil {
		return err
	}
	if stats.Broken != nil {
		return fault.New(fault.Unavailable, "journal_unavailable", "The journal takes no events.").Because(stats.Broken)
	}
	return nil
}
