package manage

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// ActionCommands are the commands on actions.
type ActionCommands struct {
	List    actionListCmd    `cmd:"" help:"List actions."`
	Get     actionGetCmd     `cmd:"" help:"Print an action."`
	Create  actionCreateCmd  `cmd:"" help:"Make an action."`
	Edit    actionEditCmd    `cmd:"" help:"Change an action by options, by a file or in an editor."`
	Delete  actionDeleteCmd  `cmd:"" help:"Delete an action."`
	Count   actionCountCmd   `cmd:"" help:"Count the events that match an action."`
	People  actionPeopleCmd  `cmd:"" help:"List the persons of the events that match an action."`
	Preview actionPreviewCmd `cmd:"" help:"Match the newest events against an action, stored or not."`
}

// actionArg names an action.
type actionArg struct {
	command.Remote `embed:""`
	Action         string `arg:"" help:"Name or id of the action."`
}

// step is a step of an action.
type step struct {
	Event    *string
	URL      *string
	Selector *string
}

// text returns the step as a table cell.
func (s step) text() string {
	var parts []string
	for name, value := range map[string]*string{"": s.Event, "url ": s.URL, "selector ": s.Selector} {
		if value != nil && *value != "" {
			parts = append(parts, name+*value)
		}
	}
	if len(parts) == 0 {
		return "other fields"
	}
	return strings.Join(parts, " and ")
}

type actionListCmd struct {
	command.Remote `embed:""`
	Search         string `help:"Part of the name."`
	Tag            string `help:"A tag."`
	Limit          int    `default:"0" help:"The most actions to print; 0 for all."`
}

func (c actionListCmd) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	texts, err := client.All(context.Background(), client.Project(actions.path), query("search", c.Search, "tags", c.Tag), c.Limit)
	if err != nil {
		return err
	}
	return command.List(c.Remote, e, texts, "ID NAME STEPS CHAT TAGS CREATED", func(a object) []any {
		steps := make([]string, len(a.Steps))
		for i, s := range a.Steps {
			steps[i] = s.text()
		}
		return []any{a.ID, a.Name, output.OneLine(strings.Join(steps, "; "), 80), command.YesNo(a.Chat), strings.Join(a.Tags, ","), a.Created}
	})
}

type actionGetCmd struct{ actionArg }

func (c actionGetCmd) Run(e *command.Env) error { return actions.get(e, c.Remote, c.Action) }

// actionFields are the options for fields of an action.
type actionFields struct {
	namedFields `embed:""`
	Event       []string `help:"Name of the events that match; repeat it for more steps." placeholder:"NAME"`
	URL         string   `name:"url" help:"Text that the URL of the events contains, in every step." placeholder:"TEXT"`
	Tag         []string `help:"A tag; repeat it for more."`
}

func (f actionFields) read(e *command.Env) (map[string]any, error) {
	fields, err := f.namedFields.read(e)
	if err != nil {
		return nil, err
	}
	events := f.Event
	if len(events) == 0 && f.URL != "" {
		events = []string{"$pageview"}
	}
	var steps []any
	for _, name := range events {
		s := map[string]any{"event": name}
		if f.URL != "" {
			s["url"], s["url_matching"] = f.URL, "contains"
		}
		steps = append(steps, s)
	}
	if steps != nil {
		fields["steps"] = steps
	}
	if f.Tag != nil {
		fields["tags"] = f.Tag
	}
	return fields, nil
}

type actionCreateCmd struct {
	command.Remote `embed:""`
	actionFields   `embed:""`
	Name           string `arg:"" help:"Name of the action."`
	DryRun         bool   `name:"dry-run" help:"Print what would be sent, and the number of the newest events that match; change nothing."`
}

func (c actionCreateCmd) Run(e *command.Env) error {
	fields, err := c.read(e)
	if err != nil {
		return err
	}
	fields["name"] = c.Name
	if c.DryRun {
		client, err := c.Connect(e)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.ErrOut, "it matches %s\n", previewed(context.Background(), client, fields["steps"]))
	}
	return actions.create(e, c.Remote, c.DryRun, fields)
}

type actionEditCmd struct {
	actionArg
	actionFields   `embed:""`
	command.Change `embed:""`
	Name           string `help:"New name."`
}

func (c actionEditCmd) Run(e *command.Env) error {
	fields, err := c.read(e)
	if err != nil {
		return err
	}
	return actions.edit(e, c.change("change", c.Change), fields, c.Name)
}

type actionDeleteCmd struct {
	actionArg
	command.Change `embed:""`
}

func (c actionDeleteCmd) Run(e *command.Env) error {
	return actions.remove(e, c.change("delete", c.Change))
}

// change returns the change of the action, with the events that it matches as effect.
func (a actionArg) change(does string, flags command.Change) change {
	return change{a.Remote, flags, a.Action, does, func(ctx context.Context, c *remote.Client, o object, fields map[string]any) string {
		text := "it matches " + counted(ctx, c, o.ID)
		if steps := fields["steps"]; steps != nil {
			text += "; with the change, " + previewed(ctx, c, steps)
		}
		return text
	}}
}

// counted describes how many events of the last three months an action matches.
func counted(ctx context.Context, c *remote.Client, id int64) string {
	var n countAnswer
	if err := c.Do(ctx, http.MethodGet, actions.at(c, id, "count/"), nil, &n); err != nil {
		return fmt.Sprintf("events that could not be counted (%v)", err)
	}
	if n.Calculating {
		return "at least " + command.Plural(n.Count, "event") + " of the last three months"
	}
	return command.Plural(n.Count, "event") + " of the last three months"
}

// preview is the answer to a preview.
type preview struct {
	Checked, Matched, Unknown int64
	Results                   []struct {
		Event struct {
			UUID, Event string
			DistinctID  string `json:"distinct_id"`
			Timestamp   string
		}
		Matches any
		Steps   []struct {
			Fields []struct {
				Field, Matching string
				Expected, Seen  any
				Matches         any
			}
		}
	}
}

// previewed describes how many of the newest events match the steps.
func previewed(ctx context.Context, c *remote.Client, steps any) string {
	var p preview
	if err := c.Do(ctx, http.MethodPost, c.Project("actions/preview/"), map[string]any{"steps": steps}, &p); err != nil {
		return fmt.Sprintf("events that could not be counted (%v)", err)
	}
	return fmt.Sprintf("%d of the newest %s", p.Matched, command.Plural(p.Checked, "event"))
}

// rangeFlags select a time range.
type rangeFlags struct {
	From string `help:"Begin: a date, a time, hours, days, weeks, months or years ago (12h, 7d, 4w, 3m, 1y), or all." placeholder:"TIME"`
	To   string `help:"End, in the same forms." placeholder:"TIME"`
}

var ago = regexp.MustCompile(`^[0-9]+[hdwmy]$`)

// query returns the range as parameters of a query, with more parameters.
func (r rangeFlags) query(pairs ...string) url.Values {
	for _, text := range []*string{&r.From, &r.To} {
		if ago.MatchString(*text) {
			*text = "-" + *text
		}
	}
	return query(append(pairs, "date_from", r.From, "date_to", r.To)...)
}

type actionCountCmd struct {
	actionArg
	rangeFlags `embed:""`
	Interval   string        `enum:"hour,day,week,month,year," default:"" help:"Print the count of each hour, day, week, month or year."`
	Wait       time.Duration `default:"1m" help:"How long to wait until older events are counted, too."`
}

// Run prints the count. While the server still counts it asks again.
func (c actionCountCmd) Run(e *command.Env) error {
	ctx := context.Background()
	client, o, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	path := "count/"
	q := c.query("interval", c.Interval)
	if c.Interval != "" {
		path = "series/"
	}
	text, err := c.poll(ctx, e, client, actions.at(client, o.ID, path+"?"+q.Encode()))
	if err != nil {
		return err
	}
	var n countAnswer
	if err := json.Unmarshal(text, &n); err != nil {
		return err
	}
	if n.Calculating {
		fmt.Fprintln(e.ErrOut, "guidon: warning: the server still counts; the count is that of the events counted so far")
	}
	return show(c.Remote, e, text, func(n countAnswer) error {
		if c.Interval == "" {
			_, err := fmt.Fprintln(e.Out, n.Count)
			return err
		}
		rows := make([][]any, len(n.Results))
		for i, r := range n.Results {
			rows[i] = []any{r.Start, r.Count}
		}
		return output.Rows(e.Out, []string{"START", "COUNT"}, rows)
	})
}

// countAnswer is the answer to a count or a series.
type countAnswer struct {
	Count       int64
	Calculating bool `json:"is_calculating"`
	Results     []struct {
		Start string
		Count int64
	}
}

// open returns a client and the action.
func (a actionArg) open(ctx context.Context, e *command.Env) (*remote.Client, object, error) {
	client, err := a.Connect(e)
	if err != nil {
		return nil, object{}, err
	}
	o, _, err := actions.find(ctx, client, a.Action)
	return client, o, err
}

// poll reads the path until the count is complete, for at most c.Wait.
func (c actionCountCmd) poll(ctx context.Context, e *command.Env, client *remote.Client, path string) (text json.RawMessage, err error) {
	p := e.StartProgress("counting events")
	defer p.Stop()
	deadline := time.Now().Add(c.Wait)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		if err := client.Do(ctx, http.MethodGet, path, nil, &text); err != nil {
			return nil, err
		}
		var n countAnswer
		if err := json.Unmarshal(text, &n); err != nil || !n.Calculating || time.Now().Add(wait).After(deadline) {
			return text, err
		}
		time.Sleep(wait)
	}
}

type actionPeopleCmd struct {
	actionArg
	rangeFlags `embed:""`
	Limit      int           `short:"n" default:"100" help:"The most persons to print."`
	Wait       time.Duration `default:"1m" help:"How long to wait until the events are counted."`
}

func (c actionPeopleCmd) Run(e *command.Env) error {
	client, o, err := c.open(context.Background(), e)
	if err != nil {
		return err
	}
	q := c.query("entity_type", "actions", "entity_id", strconv.FormatInt(o.ID, 10))
	var people []json.RawMessage
	for more := true; more && len(people) < c.Limit; {
		page, next, err := c.page(e, client, q, len(people))
		if err != nil {
			return err
		}
		people, more = append(people, page...), next && len(page) > 0
	}
	return command.List(c.Remote, e, people[:min(c.Limit, len(people))], personHeader, personRow)
}

// page returns the persons from the offset on, and whether there are more.
func (c actionPeopleCmd) page(e *command.Env, client *remote.Client, q url.Values, offset int) (people []json.RawMessage, more bool, err error) {
	q.Set("offset", strconv.Itoa(offset))
	var page struct {
		Next    *string
		Results []struct{ People []json.RawMessage }
	}
	err = retryBusy(e, c.Wait, "counting events", func() error {
		return client.Do(context.Background(), http.MethodGet, client.Project("actions/people/?"+q.Encode()), nil, &page)
	})
	for _, r := range page.Results {
		people = append(people, r.People...)
	}
	return people, page.Next != nil, err
}

type actionPreviewCmd struct {
	command.Remote `embed:""`
	actionFields   `embed:""`
	Action         string `arg:"" optional:"" help:"Name or id of a stored action; without it, the options or --file have the steps."`
	DistinctID     string `name:"distinct-id" help:"Only events of this distinct id."`
	Limit          int    `short:"n" default:"50" help:"Number of the newest events to match, at most 500."`
}

func (c actionPreviewCmd) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	fields, err := c.read(e)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if c.Action != "" {
		if _, fields, err = actions.find(ctx, client, c.Action); err != nil {
			return err
		}
	}
	body := map[string]any{"steps": fields["steps"], "limit": c.Limit}
	if c.DistinctID != "" {
		body["distinct_id"] = c.DistinctID
	}
	var text json.RawMessage
	if err := client.Do(ctx, http.MethodPost, client.Project("actions/preview/"), body, &text); err != nil {
		return err
	}
	return show(c.Remote, e, text, func(p preview) error { return p.print(e) })
}

// print prints a row for each event, with the fields that did not match.
func (p preview) print(e *command.Env) error {
	rows := make([][]any, len(p.Results))
	for i, r := range p.Results {
		var why []string
		for _, s := range r.Steps {
			for _, f := range s.Fields {
				if f.Matches != true {
					why = append(why, fmt.Sprintf("%s is %s, not %s %s", f.Field, compact(f.Seen), f.Matching, compact(f.Expected)))
				}
			}
		}
		rows[i] = []any{matchText(r.Matches), r.Event.Timestamp, r.Event.Event, r.Event.DistinctID, output.OneLine(strings.Join(why, "; "), 120)}
	}
	if err := output.Rows(e.Out, []string{"MATCHES", "TIME", "EVENT", "DISTINCT_ID", "WHY_NOT"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Out, "%d of %d events match; unknown: %d\n", p.Matched, p.Checked, p.Unknown)
	return err
}

func matchText(matches any) string {
	switch matches {
	case true:
		return "yes"
	case false:
		return "no"
	}
	return "unknown"
}
