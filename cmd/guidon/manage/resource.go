package manage

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
	"github.com/guidonhq/guidon/core/text"
)

// resource is a kind of object that a project has many of, and that people name.
type resource struct {
	kind, path string
	// editable are the fields that an editor shows.
	editable []string
}

var (
	actions = resource{"action", "actions/", []string{
		"name", "description", "tags", "steps", "post_to_chat", "chat_message_format", "chat_destinations",
	}}
	cohorts = resource{"cohort", "cohorts/", []string{"name", "description", "filters"}}
)

// object has the fields that the commands read of any resource.
type object struct {
	ID          int64
	Name        string
	Description string
	Static      bool `json:"is_static"`
	Count       *int64
	Calculating bool `json:"is_calculating"`
	Tags        []string
	Steps       []step
	Chat        bool   `json:"post_to_chat"`
	Created     string `json:"created_at"`
	Deleted     bool
}

// at returns the path of an object.
func (r resource) at(c *remote.Client, id int64, more string) string {
	return c.Project(r.path + strconv.FormatInt(id, 10) + "/" + more)
}

// find returns the object with the name, or else the one with that id, and all of its
// fields. It fails if several have the name.
func (r resource) find(ctx context.Context, c *remote.Client, name string) (found object, whole map[string]any, err error) {
	texts, err := c.All(ctx, c.Project(r.path), url.Values{"search": {name}}, 0)
	if err != nil {
		return found, nil, err
	}
	var ids []string
	for _, text := range texts {
		var o object
		if err := json.Unmarshal(text, &o); err != nil {
			return found, nil, err
		}
		if o.Name == name {
			ids = append(ids, strconv.FormatInt(o.ID, 10))
			found = o
		}
	}
	if len(ids) > 1 {
		return found, nil, fmt.Errorf("%d %ss have the name %q: choose one by its id, %s", len(ids), r.kind, name, strings.Join(ids, " or "))
	}
	if len(ids) == 0 {
		if found.ID, err = strconv.ParseInt(name, 10, 64); err != nil || found.ID < 1 {
			return found, nil, command.NotFound("no %s has the name %q%s", r.kind, name, similar(ctx, c, r.path, "name", name))
		}
	}
	var text json.RawMessage
	if err := c.Do(ctx, http.MethodGet, r.at(c, found.ID, ""), nil, &text); err != nil {
		return found, nil, fmt.Errorf("%s %s: %w", r.kind, name, err)
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return found, nil, err
	}
	if found.Deleted {
		return found, nil, command.NotFound("%s %q is deleted", r.kind, found.Name)
	}
	return found, whole, output.Decode(text, &whole)
}

// maxSimilar bounds the objects among which similar looks for a name.
const maxSimilar = 2000

// similar returns the end of an error that asks whether the most similar name of a list
// was meant; "" if none is similar.
func similar(ctx context.Context, c *remote.Client, list, field, name string) string {
	texts, err := c.All(ctx, c.Project(list), nil, maxSimilar)
	if err != nil {
		return ""
	}
	var names []string
	for _, t := range texts {
		var o map[string]any
		if json.Unmarshal(t, &o) == nil {
			if text, ok := o[field].(string); ok {
				names = append(names, text)
			}
		}
	}
	if near := text.Nearest(name, slices.Values(names), max(1, len(name)/3)); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// get prints the fields of the object with the name.
func (r resource) get(e *command.Env, f command.Remote, name string) error {
	client, err := f.Connect(e)
	if err != nil {
		return err
	}
	_, whole, err := r.find(context.Background(), client, name)
	if err != nil {
		return err
	}
	return f.PrintOne(e, whole)
}

// create sends the fields of a new object.
func (r resource) create(e *command.Env, f command.Remote, dryRun bool, fields map[string]any) error {
	client, err := f.Connect(e)
	if err != nil {
		return err
	}
	if dryRun {
		fmt.Fprintf(e.ErrOut, "would make the %s %v\n", r.kind, fields["name"])
		return f.PrintOne(e, fields)
	}
	return r.apply(e, f, client, http.MethodPost, client.Project(r.path), fields)
}

// change is a change of the object with a name.
type change struct {
	command.Remote
	command.Change
	name string
	// does is the verb of the question.
	does string
	// effect describes how much the change affects.
	effect func(ctx context.Context, c *remote.Client, o object, fields map[string]any) string
}

// change sends the fields that the function returns for the stored object, after a
// question.
func (r resource) change(e *command.Env, ch change, fieldsOf func(o object, whole map[string]any) (map[string]any, error)) error {
	client, err := ch.Connect(e)
	if err != nil {
		return err
	}
	ctx := context.Background()
	o, whole, err := r.find(ctx, client, ch.name)
	if err != nil {
		return err
	}
	fields, err := fieldsOf(o, whole)
	if err != nil {
		return err
	}
	if len(fields) == 0 {
		_, err := fmt.Fprintf(e.Out, "%s: nothing to change\n", output.Clean(o.Name))
		return err
	}
	what := fmt.Sprintf("%s %s %s (id %d): %s", ch.does, r.kind, output.Clean(o.Name), o.ID, ch.effect(ctx, client, o, fields))
	if ch.DryRun {
		fmt.Fprintf(e.ErrOut, "would %s\n", what)
		return ch.PrintOne(e, fields)
	}
	if err := ch.Ask(e, what); err != nil {
		return err
	}
	return r.apply(e, ch.Remote, client, http.MethodPatch, r.at(client, o.ID, ""), fields)
}

func (r resource) apply(e *command.Env, f command.Remote, c *remote.Client, method, path string, fields map[string]any) error {
	var answer json.RawMessage
	if err := c.Do(context.Background(), method, path, fields, &answer); err != nil {
		return err
	}
	return show(f, e, answer, func(after object) error {
		done := "is stored"
		if after.Deleted {
			done = "is deleted"
		}
		_, err := fmt.Fprintf(e.Out, "%s %d (%s) %s\n", r.kind, after.ID, output.Clean(after.Name), done)
		return err
	})
}

// show prints the fields of an answer, or calls table with what it decodes to.
func show[T any](f command.Remote, e *command.Env, answer json.RawMessage, table func(T) error) error {
	if f.Output != output.Table {
		var all any
		if err := output.Decode(answer, &all); err != nil {
			return err
		}
		return f.PrintOne(e, all)
	}
	var decoded T
	if err := json.Unmarshal(answer, &decoded); err != nil {
		return err
	}
	return table(decoded)
}

// edit changes the fields of an object, and its name unless it is empty.
func (r resource) edit(e *command.Env, ch change, fields map[string]any, name string) error {
	if name != "" {
		fields["name"] = name
	}
	return r.change(e, ch, func(o object, whole map[string]any) (map[string]any, error) {
		return r.edited(fields, whole, o.Name)
	})
}

// remove marks an object as deleted.
func (r resource) remove(e *command.Env, ch change) error {
	return r.change(e, ch, func(object, map[string]any) (map[string]any, error) {
		return map[string]any{"deleted": true}, nil
	})
}

// edited returns the fields of the options, or else those that the user changes in an
// editor.
func (r resource) edited(fields, whole map[string]any, name string) (map[string]any, error) {
	if len(fields) > 0 {
		return fields, nil
	}
	return editFields(r.kind, name, r.editable, whole)
}

// namedFields are the options for fields that every resource has.
type namedFields struct {
	Description *string `help:"Description." placeholder:"TEXT"`
	File        string  `help:"YAML or JSON file with fields of the API; - for the standard input." placeholder:"FILE"`
}

// read returns the fields of the options. Those of the file come first.
func (n namedFields) read(e *command.Env) (map[string]any, error) {
	fields := map[string]any{}
	if n.File != "" {
		given, err := readFields(e, n.File)
		if err != nil {
			return nil, err
		}
		maps.Copy(fields, given)
	}
	if n.Description != nil {
		fields["description"] = *n.Description
	}
	return fields, nil
}

// retryBusy calls do until it does not fail with 503, for at most the time, and prints
// progress on a terminal.
func retryBusy(e *command.Env, limit time.Duration, what string, do func() error) error {
	p := e.StartProgress(what)
	defer p.Stop()
	deadline := time.Now().Add(limit)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := do()
		if !command.IsStatus(err, http.StatusServiceUnavailable) || time.Now().Add(wait).After(deadline) {
			return err
		}
		time.Sleep(wait)
	}
}

// query returns the options that are not empty as a query.
func query(pairs ...string) url.Values {
	q := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			q.Set(pair[0], pair[1])
		}
	}
	return q
}
