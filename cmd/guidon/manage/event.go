package manage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// EventCommands are the commands on events.
type EventCommands struct {
	Tail  eventTailCmd  `cmd:"" help:"Print the newest events; -f follows."`
	Trace eventTraceCmd `cmd:"" help:"Print the way of an event: accepted, stored, matched by actions, sent to sinks."`
}

// event has the fields of an event that the commands read.
type event struct {
	UUID       string
	Event      string
	DistinctID string `json:"distinct_id"`
	Timestamp  string
}

type eventTailCmd struct {
	command.Place `embed:""`
	Project       int64    `env:"GUIDON_PROJECT" help:"Id of the project; default: that of the context, else 1."`
	Event         string   `help:"Only events of this name."`
	Person        string   `help:"Only events of the person with this distinct id; of a server, also uuid or number." placeholder:"ID"`
	DistinctID    string   `name:"distinct-id" help:"Only events with this distinct id." placeholder:"ID"`
	Property      []string `short:"p" help:"Only events with a property, NAME=VALUE; repeat it for more. A VALUE that is JSON is one." placeholder:"NAME=VALUE"`
	Lines         int      `short:"n" default:"10" help:"Number of stored events to print first."`
	Follow        bool     `short:"f" help:"Keep printing events as they are stored."`
	Output        string   `short:"o" enum:"json,table" default:"json" help:"json, one event a line, or table."`
}

func (c eventTailCmd) Run(e *command.Env) error {
	filters, err := propertyFilters(c.Property, "event")
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	client, err := c.Client(e, c.Project)
	if err != nil {
		return err
	}
	out := e.Out
	if c.Output == output.Table {
		out = eventLines{e.Out}
	}
	if client == nil {
		return c.tailDatabase(ctx, e, filters, out)
	}
	q := query("event", c.Event, "distinct_id", c.DistinctID, "properties", filtersText(filters))
	if c.Person != "" {
		p, _, err := findPerson(ctx, client, c.Person)
		if err != nil {
			return err
		}
		q.Set("person_id", p.UUID)
	}
	err = (&tail{client: client, query: q, out: out}).run(ctx, c.Lines, c.Follow)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (c eventTailCmd) tailDatabase(ctx context.Context, e *command.Env, filters []any, out io.Writer) error {
	cfg, err := e.Config()
	if err != nil {
		return err
	}
	project := c.Project
	if project == 0 {
		project = 1
	}
	return app.TailEvents(ctx, cfg, app.Tail{
		Project: project, Event: c.Event, DistinctID: c.DistinctID, Person: c.Person, Properties: filtersText(filters), Lines: c.Lines, Follow: c.Follow,
	}, out)
}

// eventLines writes events, given as JSON, as readable lines.
type eventLines struct{ w io.Writer }

// Write implements io.Writer for one event a call.
func (l eventLines) Write(text []byte) (int, error) {
	var ev struct {
		event
		Properties json.RawMessage
	}
	if err := json.Unmarshal(text, &ev); err != nil {
		return 0, err
	}
	_, err := fmt.Fprintf(l.w, "%s  %s  %s  %s  %s\n", ev.Timestamp, ev.UUID, output.Clean(ev.Event), output.Clean(ev.DistinctID), output.OneLine(string(ev.Properties), 160))
	return len(text), err
}

// The pause between two polls of a server, and how far back each poll reads, halved. An
// event whose own time is older than that when it is stored is not printed.
const (
	pollInterval = time.Second
	pollOverlap  = time.Minute
)

// tail follows the events of a server. The API lists events by their time, which the
// client sets: each poll reads the events of the last minutes again and prints those that
// are new.
type tail struct {
	client  *remote.Client
	query   url.Values
	out     io.Writer
	printed map[string]time.Time // times of the events by their uuid
}

func (t *tail) run(ctx context.Context, lines int, following bool) error {
	t.printed = map[string]time.Time{}
	var stored []json.RawMessage
	if following {
		var err error
		if stored, err = t.since(ctx, time.Now().Add(-2*pollOverlap)); err != nil {
			return err
		}
	}
	if lines > 0 {
		newest, err := follow(ctx, t.client, t.client.Project("events/"), with(t.query, "limit", strconv.Itoa(lines)), lines)
		if err != nil {
			return err
		}
		if err := t.print(newest, t.out); err != nil {
			return err
		}
	}
	if !following {
		return nil
	}
	if err := t.print(stored, io.Discard); err != nil { // marks them as printed
		return err
	}
	return t.poll(ctx)
}

// poll prints events as they are stored, until ctx ends.
func (t *tail) poll(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollInterval):
		}
		since := time.Now().Add(-2 * pollOverlap)
		page, err := t.since(ctx, since)
		if err != nil {
			return err
		}
		if err := t.print(page, t.out); err != nil {
			return err
		}
		maps.DeleteFunc(t.printed, func(_ string, at time.Time) bool { return at.Before(since.Add(-pollOverlap)) })
	}
}

// tailBound bounds the events that one poll reads.
const tailBound = 20_000

// since returns the events after the time, newest first.
func (t *tail) since(ctx context.Context, at time.Time) ([]json.RawMessage, error) {
	q := with(t.query, "limit", "1000")
	q.Set("after", at.UTC().Format(time.RFC3339Nano))
	return follow(ctx, t.client, t.client.Project("events/"), q, tailBound)
}

// print prints the events that were not printed before, oldest first.
func (t *tail) print(page []json.RawMessage, out io.Writer) error {
	for _, text := range slices.Backward(page) {
		var ev event
		if err := json.Unmarshal(text, &ev); err != nil {
			return err
		}
		if _, known := t.printed[ev.UUID]; known {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, ev.Timestamp)
		if err != nil {
			return fmt.Errorf("time of event %s: %w", ev.UUID, err)
		}
		t.printed[ev.UUID] = at
		var line bytes.Buffer
		if err := json.Compact(&line, text); err != nil {
			return err
		}
		line.WriteByte('\n')
		if _, err := out.Write(line.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// with returns a copy of the query with one more parameter.
func with(q url.Values, name, value string) url.Values {
	out := url.Values{name: {value}}
	for n, values := range q {
		out[n] = values
	}
	return out
}

type eventTraceCmd struct {
	command.Remote `embed:""`
	UUID           string `arg:"" name:"uuid" help:"uuid of the event."`
}

// trace is the answer of the server.
type trace struct {
	UUID, State, Event string
	DistinctID         string  `json:"distinct_id"`
	PersonID           *string `json:"person_id"`
	Received           *string `json:"received_at"`
	Accepted           *struct {
		At         string
		Seq        uint64 `json:"journal_seq"`
		Index      int
		Historical bool `json:"historical_migration"`
	}
	Stored  bool
	Actions []struct {
		ID   int64
		Name string
	}
	Notices []struct {
		Type    string
		Dropped bool
		Details map[string]any
	}
	Worker      *traceReader
	Sinks       []traceReader
	DeadLetters []struct {
		ID            int64
		Source, Error string
	} `json:"dead_letters"`
}

type traceReader struct {
	Name, State, Error string
	Before             int64 `json:"records_before"`
}

func (c eventTraceCmd) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	var text json.RawMessage
	if err := client.Do(context.Background(), http.MethodGet, client.Project("events/"+url.PathEscape(c.UUID)+"/trace/"), nil, &text); err != nil {
		if command.IsStatus(err, http.StatusNotFound) {
			return command.NotFound("the server has no trace of event %s: it is not in the journal, not stored and no dead letter", c.UUID)
		}
		return err
	}
	return show(c.Remote, e, text, func(t trace) error {
		_, err := io.WriteString(e.Out, t.text())
		return err
	})
}

// text returns the steps of the event, one a line.
func (t trace) text() string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(output.Clean(fmt.Sprintf(format, args...)))
		b.WriteByte('\n')
	}
	line("%s of %s: %s", t.Event, t.DistinctID, t.State)
	if a := t.Accepted; a != nil {
		lane := ""
		if a.Historical {
			lane = ", historical"
		}
		line("  accepted  %s, journal record %d, item %d%s", a.At, a.Seq, a.Index, lane)
	} else if t.Received != nil {
		line("  accepted  %s; the journal holds it no longer", *t.Received)
	}
	for _, n := range t.Notices {
		what := "changed"
		if n.Dropped {
			what = "dropped"
		}
		line("  %s   %s %s", what, n.Type, compact(n.Details))
	}
	if t.Worker != nil {
		line("  worker    %s", t.Worker.text())
	}
	if t.Stored {
		who := "no person"
		if t.PersonID != nil {
			who = "person " + *t.PersonID
		}
		line("  stored    for %s", who)
	}
	for _, a := range t.Actions {
		line("  action    %s (id %d)", a.Name, a.ID)
	}
	for _, s := range t.Sinks {
		line("  sink      %s: %s", s.Name, s.text())
	}
	for _, d := range t.DeadLetters {
		line("  dead letter %d of %s: %s", d.ID, d.Source, d.Error)
	}
	return b.String()
}

func (r traceReader) text() string {
	text := r.State
	if r.State == "waiting" {
		text += fmt.Sprintf(" behind %d records", r.Before)
	}
	if r.Error != "" {
		text += ": " + r.Error
	}
	return text
}
