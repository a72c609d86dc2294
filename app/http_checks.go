package app

import (
	"context"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/web"
)

// checks is what must work before the server calls itself ready: a journal that
// takes events, and the plugins an operator has called required. A database
// that is away is not among them: capture and decide go on without it.
type checks struct {
	journal journal.Journal
	host    *host.Host
	worker  *ingestion.Worker
}

// Routes registers the checks of GET /_readiness.
func (c *checks) Routes(g *web.Gate) {
	g.Check("journal", c.takesEvents)
	g.Check("plugins", func(context.Context) error { return c.host.Ready() })
	g.Tell("ingestion", func() any { return progress{c.worker.Progress(), c.worker.HistoricalProgress()} })
}

// progress is how far the processing of events is: of those that are sent as
// they happen, and of imports. A backlog is no reason not to be ready: capture
// and decide do not wait for it.
type progress struct {
	Live       ingestion.Progress `json:"live"`
	Historical ingestion.Progress `json:"historical"`
}

func (c *checks) takesEvents(ctx context.Context) error {
	stats, err := c.journal.Stats(ctx)
	if err != nil {
		return err
	}
	if stats.Broken != nil {
		return fault.New(fault.Unavailable, "journal_unavailable", "The journal takes no events.").Because(stats.Broken)
	}
	return nil
}
