// Package postgres is a sink that keeps events in a table of PostgreSQL.
//
// A batch is copied into a temporary table and inserted from there, skipping
// the events that are in the table already: however often a batch is sent, each
// event is there once. The table is made on the first start and gets the
// columns of later versions by itself. An event that the database refuses for
// what it holds is found and reported alone; the others of its batch are kept.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/guidonhq/guidon/sdk"
)

// config is the config of an instance; sample.yaml explains each key.
type config struct {
	URL         string        `json:"url" format:"postgres-url" required:"true" secret:"true" doc:"Where the database is: postgres://user:password@host:5432/name. TLS by sslmode, sslrootcert, sslcert and sslkey in its query."`
	Schema      string        `json:"schema" doc:"Schema the table is in. It must exist."`
	Table       string        `json:"table" doc:"Table to insert into."`
	Manage      bool          `json:"manage" doc:"Make the table, its indexes and the columns of later versions. Without it they must be there."`
	Connections int           `json:"connections" min:"1" max:"64" doc:"How many batches are written at once."`
	MaxEvents   int           `json:"max_events" min:"1" max:"50000" doc:"Most events in a batch."`
	Timeout     time.Duration `json:"timeout" min:"1s" max:"10m" doc:"The database gives up on a statement that takes longer."`
}

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "postgres", Version: "1.0.0",
		Summary: "Keeps events in a table of PostgreSQL, each once.",
		Sink:    func() sdk.Sink { return New() },
	}
}

// Sink is one table that events are inserted into. Write may be called from
// several goroutines.
type Sink struct {
	cfg  config
	pool *pgxpool.Pool
}

var (
	_ sdk.Sink       = (*Sink)(nil)
	_ sdk.Configured = (*Sink)(nil)
	_ sdk.Validator  = (*Sink)(nil)
	_ sdk.Checker    = (*Sink)(nil)
)

// New returns a sink that is not open, its config at the defaults.
func New() *Sink {
	return &Sink{cfg: config{
		Schema: "public", Table: "events", Manage: true, Connections: 2, MaxEvents: 5000, Timeout: time.Minute,
	}}
}

// Config is where the SDK puts the operator's config.
func (s *Sink) Config() any { return &s.cfg }

// Validate checks the names and the URL; a name is quoted wherever it is used,
// so any text of that length will do.
func (s *Sink) Validate() error {
	var errs []error
	for _, name := range []struct{ pointer, value string }{{"/schema", s.cfg.Schema}, {"/table", s.cfg.Table}} {
		if n := len(name.value); n == 0 || n > maxName {
			errs = append(errs, sdk.ConfigError(name.pointer, fmt.Errorf("a name has 1 to %d bytes, not %d", maxName, n)))
		}
	}
	if _, err := pgxpool.ParseConfig(s.cfg.URL); err != nil {
		// The library's message holds the URL, which is a secret.
		errs = append(errs, sdk.ConfigError("/url", errors.New("this is not a URL of PostgreSQL: postgres://user:password@host:5432/name")))
	}
	return errors.Join(errs...)
}

// maxName leaves room in the 63 bytes of an identifier for suffixes after
// it to name an index.
const maxName = 48

// Open connects and sees to the table.
func (s *Sink) Open(ctx context.Context, _ sdk.OpenRequest) (sdk.SinkProperties, error) {
	cfg, err := pgxpool.ParseConfig(s.cfg.URL)
	if err != nil {
		return sdk.SinkProperties{}, s.Validate()
	}
	cfg.MaxConns = int32(s.cfg.Connections)
	cfg.ConnConfig.RuntimeParams["application_name"] = "guidon"
	cfg.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt(s.cfg.Timeout.Milliseconds(), 10)
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	// The name of a prepared statement means nothing behind a pooler.
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	if s.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return sdk.SinkProperties{}, classify(err)
	}
	if err := s.prepare(ctx); err != nil {
		return sdk.SinkProperties{}, classify(err)
	}
	return sdk.SinkProperties{
		MaxInFlight: s.cfg.Connections, MaxEvents: s.cfg.MaxEvents, MaxBytes: 8 << 20,
		Ordering: sdk.OrderNone, Dedup: sdk.DedupByEventID, Commit: sdk.CommitImmediate, Durability: sdk.DurabilityLocalDisk,
	}, nil
}

// Check inserts an event and takes it back.
func (s *Sink) Check(ctx context.Context) error {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return classify(err)
	}
	sample := sdk.Event{Name: "check", DistinctID: "check", Properties: []byte("{}")}
	_, err = s.insert(ctx, tx, []row{rowOf(&sample, [16]byte{})})
	return classify(errors.Join(err, tx.Rollback(ctx)))
}

// Close closes the connections; what was confirmed is already safe.
func (s *Sink) Close(context.Context) error {
	if s.pool != nil {
		s.pool.Close()
	}
	return nil
}
