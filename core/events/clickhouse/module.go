package clickhouse

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/events"
)

// Module makes the event store, in ClickHouse or in the database, which works in the
// background while the server runs.
var Module = fx.Module("events", fx.Provide(
	fx.Annotate(Open, fx.OnStart((*events.Service).Start), fx.OnStop((*events.Service).Stop)),
))
