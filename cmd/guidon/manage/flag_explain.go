package manage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
)

type flagExplainCmd struct {
	command.Remote `embed:""`
	FlagKey        string   `arg:"" name:"flag" help:"Key of the flag."`
	DistinctID     string   `arg:"" name:"distinct-id" help:"Distinct id of the person."`
	Property       []string `short:"p" help:"A property of the person, NAME=VALUE, instead of the stored one. A VALUE that is JSON is one." placeholder:"NAME=VALUE"`
	Group          []string `help:"A group of the person, TYPE=KEY." placeholder:"TYPE=KEY"`
}

func (c flagExplainCmd) Run(e *command.Env) error {
	body := map[string]any{"distinct_id": c.DistinctID}
	for name, pairs := range map[string][]string{"person_properties": c.Property, "groups": c.Group} {
		values, err := readPairs(pairs)
		if err != nil {
			return err
		}
		if len(values) > 0 {
			body[name] = values
		}
	}
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	f, _, err := findFlag(context.Background(), client, c.FlagKey)
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := client.Do(context.Background(), http.MethodPost, flagPath(client, f.ID, "explain/"), body, &answer); err != nil {
		return err
	}
	if c.Output != output.Table {
		var all any
		if err := output.Decode(answer, &all); err != nil {
			return err
		}
		return c.PrintOne(e, all)
	}
	var x explanation
	if err := json.Unmarshal(answer, &x); err != nil {
		return err
	}
	var b strings.Builder
	x.write(&b, "")
	_, err = io.WriteString(e.Out, b.String())
	return err
}

// readPairs reads NAME=VALUE. A value that is JSON is decoded.
func readPairs(pairs []string) (map[string]any, error) {
	values := map[string]any{}
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not NAME=VALUE", pair)
		}
		var value any = text
		if decoded := any(nil); output.Decode([]byte(text), &decoded) == nil {
			value = decoded
		}
		values[name] = value
	}
	return values, nil
}

// explanation is the trace of an evaluation, as the server answers it.
type explanation struct {
	Key      string
	Version  int64
	Computed bool
	Served   bool
	Failure  string
	Value    any
	Payload  *string
	Reason   *struct{ Code, Description string }
	Gates    []struct {
		Name, Result, Detail string
	}
	Conditions []struct {
		Index     int
		Result    string
		Reason    string
		Filters   []explainedFilter
		Rollout   *float64 `json:"rollout_percentage"`
		Hash      *float64
		Threshold *float64
		Variant   string
	}
	Variant *struct {
		Key      string
		Override bool
		Hash     *float64
	}
	DependsOn []explanation `json:"depends_on"`
}

type explainedFilter struct {
	Key, Operator, Source, Result, Why, Plugin string

	Expected, Seen any
	Hidden         bool
	Negated        bool
	Filters        []explainedFilter
}

// write writes the trace as lines, each deeper step with more indentation.
func (x explanation) write(b *strings.Builder, indent string) {
	line := func(format string, args ...any) {
		fmt.Fprintf(b, "%s%s\n", indent, output.Clean(fmt.Sprintf(format, args...)))
	}
	line("%s = %s  (version %d%s)", x.Key, x.result(), x.Version, x.reason())
	if x.Payload != nil {
		line("  payload: %s", *x.Payload)
	}
	for _, g := range x.Gates {
		if g.Result != "passed" && g.Name != "conditions" {
			line("  %s: %s %s", g.Name, g.Result, g.Detail)
		}
	}
	for _, set := range x.Conditions {
		line("  condition set %d: %s", set.Index+1, words(set.Result, set.Reason)) // counted from 1, as in reasons
		for _, f := range set.Filters {
			f.write(b, indent+"    ")
		}
		if set.Rollout != nil && set.Hash != nil {
			line("    rollout %v %%: hash %.4f", *set.Rollout, *set.Hash)
		}
		if set.Variant != "" {
			line("    variant of the condition set: %s", set.Variant)
		}
	}
	if v := x.Variant; v != nil && v.Hash != nil {
		line("  variant %s: hash %.4f", v.Key, *v.Hash)
	}
	for _, d := range x.DependsOn {
		line("  depends on:")
		d.write(b, indent+"    ")
	}
}

func (x explanation) result() string {
	if !x.Computed {
		return "not computed: " + x.Failure
	}
	text := compact(x.Value)
	if !x.Served {
		text += ", left out of answers"
	}
	return text
}

func (x explanation) reason() string {
	if x.Reason == nil {
		return ""
	}
	if x.Reason.Description != "" {
		return "; " + x.Reason.Description
	}
	return "; " + x.Reason.Code
}

func (f explainedFilter) write(b *strings.Builder, indent string) {
	seen := compact(f.Seen)
	if f.Hidden {
		seen = "(hidden: the key lacks the scope person:read)"
	}
	not := ""
	if f.Negated {
		not = "not "
	}
	text := fmt.Sprintf("%s: %s%s %s %s; it is %s (%s)", words(f.Result, f.Why), not, f.Key, f.Operator, compact(f.Expected), seen, words(f.Source, f.Plugin))
	fmt.Fprintf(b, "%s%s\n", indent, output.Clean(text))
	for _, inner := range f.Filters {
		inner.write(b, indent+"  ")
	}
}

// words joins the texts that are not empty.
func words(texts ...string) string {
	var given []string
	for _, text := range texts {
		if text != "" {
			given = append(given, text)
		}
	}
	return strings.Join(given, ", ")
}

// compact returns v as JSON in at most 200 bytes.
func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return output.OneLine(string(text), 200)
}
