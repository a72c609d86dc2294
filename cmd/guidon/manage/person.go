package manage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// PersonCommands are the commands on persons of a running server.
type PersonCommands struct {
	Find personFindCmd `cmd:"" help:"Find persons by a text, an e-mail address or properties."`
	Show personShowCmd `cmd:"" help:"Print a person: properties, distinct ids, newest events and flags."`
}

// person has the fields of a person that the commands read.
type person struct {
	ID          any // a number; in lists of a cohort, the uuid
	UUID        string
	Name        string
	DistinctIDs []string `json:"distinct_ids"`
	Properties  map[string]any
	Created     string `json:"created_at"`
	Identified  *bool  `json:"is_identified"`
	Seen        string `json:"last_seen_at"`
}

const personHeader = "UUID NAME DISTINCT_IDS CREATED LAST_SEEN"

func personRow(p person) []any {
	return []any{p.UUID, p.Name, output.OneLine(strings.Join(p.DistinctIDs, ","), 80), p.Created, command.OrDash(p.Seen)}
}

type personFindCmd struct {
	command.Remote `embed:""`
	Search         string   `arg:"" optional:"" help:"Part of the e-mail address, the name or a distinct id."`
	Email          string   `help:"E-mail address, in any case." placeholder:"ADDRESS"`
	Property       []string `short:"p" help:"A property, NAME=VALUE; repeat it for more. A VALUE that is JSON is one." placeholder:"NAME=VALUE"`
	Limit          int      `short:"n" default:"50" help:"The most persons to print."`
}

func (c personFindCmd) Run(e *command.Env) error {
	filters, err := propertyFilters(c.Property, "person")
	if err != nil {
		return err
	}
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	q := query("search", c.Search, "email", c.Email, "properties", filtersText(filters))
	p := e.StartProgress("searching persons")
	found, err := client.All(context.Background(), client.Project("persons/"), q, c.Limit)
	p.Stop()
	if err != nil {
		return err
	}
	return command.List(c.Remote, e, found, personHeader, personRow)
}

// propertyFilters returns NAME=VALUE pairs as property filters of the kind.
func propertyFilters(pairs []string, kind string) (filters []any, err error) {
	values, err := readPairs(pairs)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		filters = append(filters, map[string]any{"key": name, "type": kind, "operator": "exact", "value": values[name]})
	}
	return filters, err
}

// filtersText returns filters as a parameter of a query.
func filtersText(filters []any) string {
	if len(filters) == 0 {
		return ""
	}
	text, err := json.Marshal(filters)
	if err != nil { // they were read from JSON
		return ""
	}
	return string(text)
}

// findPerson returns the person with a distinct id, or else with a uuid or number.
func findPerson(ctx context.Context, c *remote.Client, id string) (p person, text json.RawMessage, err error) {
	found, err := c.All(ctx, c.Project("persons/"), url.Values{"distinct_id": {id}}, 1)
	if err != nil {
		return p, nil, err
	}
	if len(found) == 1 {
		text = found[0]
	} else if err := c.Do(ctx, http.MethodGet, c.Project("persons/"+url.PathEscape(id)+"/"), nil, &text); err != nil {
		if command.IsStatus(err, http.StatusNotFound) || command.IsStatus(err, http.StatusBadRequest) {
			err = command.NotFound("no person has the distinct id, uuid or number %q", id)
		}
		return p, nil, err
	}
	return p, text, json.Unmarshal(text, &p)
}

type personShowCmd struct {
	command.Remote `embed:""`
	ID             string `arg:"" name:"person" help:"Distinct id, uuid or number of the person."`
	Events         int    `short:"n" default:"10" help:"Number of the newest events."`
}

// Run prints the person. Events and flags that the key may not read are left out with a
// warning.
func (c personShowCmd) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	ctx := context.Background()
	p, text, err := findPerson(ctx, client, c.ID)
	if err != nil {
		return err
	}
	var events []json.RawMessage
	if c.Events > 0 {
		events, err = follow(ctx, client, client.Project("events/"), url.Values{"person_id": {p.UUID}, "limit": {strconv.Itoa(c.Events)}}, c.Events)
		warnIf(e, "events", err)
	}
	flags, err := personFlags(ctx, client, p)
	warnIf(e, "flags", err)
	if c.Output != output.Table {
		all := map[string]any{"flags": flags}
		if err := decodeInto(all, "person", text); err != nil {
			return err
		}
		list, err := json.Marshal(events)
		if err == nil {
			err = decodeInto(all, "events", list)
		}
		if err != nil {
			return err
		}
		return c.PrintOne(e, all)
	}
	return writePerson(e.Out, p, events, flags)
}

func decodeInto(out map[string]any, name string, text []byte) error {
	var v any
	err := output.Decode(text, &v)
	out[name] = v
	return err
}

// warnIf prints a warning that the part cannot be read.
func warnIf(e *command.Env, part string, err error) {
	if err != nil {
		fmt.Fprintf(e.ErrOut, "guidon: warning: the %s cannot be read: %v\n", part, err)
	}
}

// personFlags returns the value and the reason of each flag for the person.
func personFlags(ctx context.Context, c *remote.Client, p person) (map[string]any, error) {
	if len(p.DistinctIDs) == 0 {
		return nil, nil
	}
	var answer struct {
		Flags map[string]struct {
			Value  any
			Served bool
			Reason struct{ Description string }
		}
	}
	body := map[string]any{"distinct_id": p.DistinctIDs[0]}
	if err := c.Do(ctx, http.MethodPost, c.Project("feature_flags/explain/"), body, &answer); err != nil {
		return nil, err
	}
	flags := map[string]any{}
	for key, f := range answer.Flags {
		flags[key] = map[string]any{"value": f.Value, "reason": f.Reason.Description, "served": f.Served}
	}
	return flags, nil
}

func writePerson(w io.Writer, p person, events []json.RawMessage, flags map[string]any) error {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(output.Clean(fmt.Sprintf(format, args...)))
		b.WriteByte('\n')
	}
	line("%s (id %v, uuid %s)", p.Name, p.ID, p.UUID)
	line("created %s, last seen %s", p.Created, command.OrDash(p.Seen))
	line("distinct ids (%d): %s", len(p.DistinctIDs), strings.Join(p.DistinctIDs[:min(20, len(p.DistinctIDs))], ", "))
	line("properties (%d):", len(p.Properties))
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		line("  %s: %s", name, compact(p.Properties[name]))
	}
	line("flags (%d):", len(flags))
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		f, _ := flags[key].(map[string]any)
		line("  %s = %s  (%v)", key, compact(f["value"]), f["reason"])
	}
	line("newest events (%d):", len(events))
	for _, text := range events {
		var ev event
		if err := json.Unmarshal(text, &ev); err != nil {
			return err
		}
		line("  %s  %s  %s  %s", ev.Timestamp, ev.Event, ev.DistinctID, ev.UUID)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// PersonErase erases persons of a running server.
type PersonErase struct {
	command.Remote `embed:""`
	command.Change `embed:""`
	Persons        []string `arg:"" optional:"" name:"person" help:"Distinct ids, uuids or numbers of persons."`
	WithEvents     bool     `name:"with-events" help:"Also erase their events and dead letters, for good."`
}

// countedEvents bounds the events that the question of an erasure counts.
const countedEvents = 1000

// Run erases the persons after one question for all. Without --with-events it keeps
// their events.
func (c PersonErase) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	ctx := context.Background()
	var found []person
	for _, id := range c.Persons {
		p, _, err := findPerson(ctx, client, id)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(found, func(o person) bool { return o.UUID == p.UUID }) {
			found = append(found, p)
		}
	}
	if ok, err := c.Proceed(e, c.describe(ctx, e, client, found)); !ok {
		return err
	}
	for _, p := range found {
		if err := c.erase(e, client, p); err != nil {
			return err
		}
	}
	return nil
}

// describe returns what the erasure does, with counts.
func (c PersonErase) describe(ctx context.Context, e *command.Env, client *remote.Client, found []person) string {
	ids, events := 0, 0
	var names []string
	more := ""
	p := e.StartProgress("counting events")
	defer p.Stop()
	for _, one := range found {
		ids += len(one.DistinctIDs)
		names = append(names, output.Clean(one.Name))
		list, err := follow(ctx, client, client.Project("events/"), url.Values{"person_id": {one.UUID}, "limit": {"500"}}, countedEvents+1)
		if err != nil {
			more = fmt.Sprintf(" (not counted: %v)", err)
		}
		if len(list) > countedEvents {
			list, more = list[:countedEvents], " or more"
		}
		events += len(list)
	}
	kept := "keep"
	if c.WithEvents {
		kept = "erase"
	}
	return fmt.Sprintf("erase %s (%s) with %s, and %s %s%s", command.Plural(len(found), "person"), output.OneLine(strings.Join(names, ", "), 120), command.Plural(ids, "distinct id"), kept, command.Plural(events, "event"), more)
}

func (c PersonErase) erase(e *command.Env, client *remote.Client, p person) error {
	path := client.Project("persons/" + url.PathEscape(p.UUID) + "/")
	if c.WithEvents {
		path += "?delete_events=true"
	}
	progress := e.StartProgress("erasing " + output.Clean(p.Name))
	err := client.Do(context.Background(), http.MethodDelete, path, nil, nil)
	progress.Stop()
	done := "is erased"
	if refused, ok := errors.AsType[*remote.Error](err); ok && refused.Code == "erasure_pending" {
		done, err = "will be erased: the server has recorded it", nil
	}
	if err == nil {
		_, err = fmt.Fprintf(e.Out, "person %s (%s) %s\n", p.UUID, output.Clean(p.Name), done)
	}
	return err
}
