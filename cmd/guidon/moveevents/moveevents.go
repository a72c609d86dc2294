// Package moveevents is the command guidon migrate-data --to clickhouse.
package moveevents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse"
)

// Options are those of the command.
type Options struct {
	From, To       string
	DryRun, Verify bool
	Rate           int
	JSON           bool
}

// IsTarget reports whether --to names a ClickHouse.
func IsTarget(to string) bool {
	scheme, _, _ := strings.Cut(to, ":")
	return scheme == "clickhouse" || scheme == "clickhouses"
}

// Run copies the events of the database to ClickHouse, or compares them.
func Run(e *command.Env, o Options) error {
	cfg, err := e.Config()
	if err != nil {
		return err
	}
	if o.To != "clickhouse" {
		cfg.Events.URL = o.To
	}
	from, err := sourceConfig(cfg, o.From)
	switch {
	case err != nil:
		return err
	case cfg.Events.URL == "":
		return errors.New("events.url of the config names no ClickHouse: set it to the target, or name the target by its URL")
	case !cfg.Database.Postgres():
		return errors.New("events on ClickHouse need PostgreSQL for the rest: copy the database first, with guidon migrate-data --to postgres")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := move(ctx, e, cfg, from, o)
	if r != nil && r.Projects != nil {
		err = errors.Join(printReport(e, o, r), err)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New("interrupted: the same command continues")
	}
	return err
}

// sourceConfig returns the database that --from names.
func sourceConfig(cfg app.Config, from string) (db.Config, error) {
	source := cfg.Database
	switch from {
	case "", "postgres":
	case "sqlite":
		source.URL = ""
	default:
		source.URL = from
		if source.Validate() != nil {
			return source, errors.New(`the source must be "postgres" for database.url, "sqlite" or "sqlite:PATH"`)
		}
	}
	return source, nil
}

func move(ctx context.Context, e *command.Env, cfg app.Config, from db.Config, o Options) (_ *clickhouse.MoveReport, err error) {
	state, err := db.OpenExisting(ctx, cfg.Database, cfg.DataDir)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	source := state
	if from.URL != cfg.Database.URL {
		if source, err = db.OpenExisting(ctx, from, cfg.DataDir); err != nil {
			return nil, fmt.Errorf("open the source: %w", err)
		}
		defer func() { err = errors.Join(err, source.Close()) }()
	}
	store, err := clickhouse.New(cfg.Events, state, events.NewShared(state), zap.NewNop())
	if err != nil {
		return nil, err
	}
	show := &progress{e: e, begin: time.Now(), terminal: command.IsTerminal(e.ErrOut)}
	r, err := store.Move(ctx, source, clickhouse.MoveOptions{DryRun: o.DryRun, Verify: o.Verify, Rate: o.Rate, Progress: show.report})
	show.end()
	return r, err
}

func printReport(e *command.Env, o Options, r *clickhouse.MoveReport) error {
	if o.JSON {
		return json.NewEncoder(e.Out).Encode(struct {
			*clickhouse.MoveReport
			Seconds float64 `json:"seconds"`
		}{r, r.Took.Seconds()})
	}
	equal := true
	var total int64
	for i := range r.Projects {
		p := &r.Projects[i]
		total += p.Source
		result := "equal"
		if !p.Equal() {
			equal, result = false, "DIFFERS"
		}
		if o.DryRun {
			result = "to copy: " + command.Plural(max(0, p.Source-p.Target), "event")
		}
		fmt.Fprintf(e.Out, "project %d: %s in the database, %d in ClickHouse: %s\n", p.Project, command.Plural(p.Source, "event"), p.Target, result)
	}
	if r.Repeated > 0 {
		fmt.Fprintf(e.Out, "%s not copied: ClickHouse got the same uuids later\n", command.Plural(r.Repeated, "event"))
	}
	took := r.Took.Round(time.Millisecond)
	switch {
	case !equal || o.DryRun:
	case o.Verify:
		fmt.Fprintf(e.Out, "compared all columns of %s in %s\n", command.Plural(total, "event"), took)
	default:
		fmt.Fprintf(e.Out, "copied %s up to row %d, removed %d, in %s\n", command.Plural(r.Copied, "event"), r.Through, r.Removed, took)
		fmt.Fprintln(e.Out, "run the command again when no server stores events in the database any more, and start with events.url")
	}
	return nil
}

// progress prints how far the move has come: in one line of a terminal, else a line at
// intervals.
type progress struct {
	e            *command.Env
	terminal     bool
	begin, shown time.Time
}

func (p *progress) report(now clickhouse.MoveProgress) {
	interval := 10 * time.Second
	if p.terminal {
		interval = 200 * time.Millisecond
	}
	if time.Since(p.shown) < interval {
		return
	}
	p.shown = time.Now()
	text := fmt.Sprintf("row %d of %d, copied %s, %.0f a second", now.Row, now.Last, command.Plural(now.Copied, "event"), float64(now.Copied)/time.Since(p.begin).Seconds())
	if p.terminal {
		fmt.Fprintf(p.e.ErrOut, "\r\x1b[K%s", text)
		return
	}
	fmt.Fprintln(p.e.ErrOut, text)
}

// end erases the line of a terminal.
func (p *progress) end() {
	if p.terminal && !p.shown.IsZero() {
		fmt.Fprint(p.e.ErrOut, "\r\x1b[K")
	}
}
