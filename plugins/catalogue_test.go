package plugins_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/plugins"
	"github.com/guidonhq/guidon/sdk"
)

var update = flag.Bool("update", false, "write docs/plugins/catalogue.md anew")

// The catalogue is made from the summaries, schemas and operators of the
// plugins, so it cannot be wrong.
func TestTheCatalogueIsWhatThePluginsSay(t *testing.T) {
	t.Parallel()
	const path = "../docs/plugins/catalogue.md"
	now := catalogue(t)
	if *update {
		if err := os.WriteFile(path, now, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, now) {
		t.Error("docs/plugins/catalogue.md is stale: run make generate, or go generate ./plugins")
	}
}

// catalogue is the page.
func catalogue(t *testing.T) []byte {
	t.Helper()
	var page bytes.Buffer
	page.WriteString("# The bundled plugins\n\nMade from what the plugins say of themselves, by `make generate`: change the plugin, not this page. " +
		"How to enable one is in [operating.md](operating.md), how to write one in [tutorial.md](tutorial.md).\n\n| kind | plugin | what it does |\n|---|---|---|\n")
	kinds := []string{"sink", "notifier", "matcher"}
	for _, kind := range kinds {
		for _, name := range plugins.Names() {
			if p, _ := plugins.Find(name); values(p)[kind] != nil {
				fmt.Fprintf(&page, "| %s | [%s](#%s-%s) | %s |\n", kind, name, kind, name, cell(p.Summary))
			}
		}
	}
	for _, kind := range kinds {
		for _, name := range plugins.Names() {
			if p, _ := plugins.Find(name); values(p)[kind] != nil {
				entry(t, &page, p, kind)
			}
		}
	}
	return page.Bytes()
}

// entry writes what one plugin is as one kind.
func entry(t *testing.T, page *bytes.Buffer, p sdk.Plugin, kind string) {
	t.Helper()
	folder := "../../plugins/" + kind + "/" + p.Name
	fmt.Fprintf(page, "\n## %s: %s\n\n%s Version %s. [README](%s/README.md), [sample.yaml](%s/sample.yaml).\n", kind, p.Name, p.Summary, p.Version, folder, folder)
	var can []string
	value := values(p)[kind]
	for _, feature := range []struct {
		there bool
		says  string
	}{
		{is[sdk.Checker](value), "tries its destination when asked (`guidon plugin check`)"},
		{is[sdk.Flusher](value), "stages events and makes them safe on a flush"},
		{is[sdk.Querier](value), "answers questions about actions (alpha)"},
		{is[sdk.Previewer](value), "shows a message without sending it"},
		{is[sdk.Metricser](value), "has metrics of its own"},
		{p.Exclusive, "never runs twice for one instance, not even while one process replaces another"},
		{p.SingleInstance, "has a process for each instance"},
	} {
		if feature.there {
			can = append(can, feature.says)
		}
	}
	if len(can) > 0 {
		fmt.Fprintf(page, "\nIt %s.\n", strings.Join(can, "; "))
	}
	var root option
	if err := json.Unmarshal(sdk.Schema(configOf(p, kind)), &root); err != nil {
		t.Fatal(err)
	}
	if rows := root.rows("", nil); len(rows) > 0 {
		page.WriteString("\n| option | type | default | |\n|---|---|---|---|\n" + strings.Join(rows, ""))
	} else {
		page.WriteString("\nIt has no options.\n")
	}
	if m, ok := value.(sdk.Matcher); ok {
		for _, op := range m.Operators() {
			operator(page, op)
		}
	}
}

func is[T any](v any) bool { _, ok := v.(T); return ok }

// option is one field of a config, as its schema tells.
type option struct {
	Type        any                `json:"type"`
	Description string             `json:"description"`
	Default     json.RawMessage    `json:"default"`
	Enum        []json.RawMessage  `json:"enum"`
	Minimum     json.RawMessage    `json:"minimum"`
	Maximum     json.RawMessage    `json:"maximum"`
	Pattern     string             `json:"pattern"`
	WriteOnly   bool               `json:"writeOnly"`
	Required    []string           `json:"required"`
	Properties  map[string]*option `json:"properties"`
	Items       *option            `json:"items"`
	More        json.RawMessage    `json:"additionalProperties"`
}

// rows are a line for each field below, sorted, those that are required first.
func (o *option) rows(path string, rows []string) []string {
	names := slices.Sorted(maps.Keys(o.Properties))
	slices.SortStableFunc(names, func(a, b string) int {
		return strings.Compare(fmt.Sprint(!slices.Contains(o.Required, a)), fmt.Sprint(!slices.Contains(o.Required, b)))
	})
	for _, name := range names {
		f := o.Properties[name]
		value := "`" + string(f.Default) + "`"
		if slices.Contains(o.Required, name) {
			value = "required"
		} else if f.Default == nil {
			value = ""
		}
		text := f.Description
		if f.WriteOnly {
			text += " A secret: write `${env:NAME}` or `${file:/path}`."
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", path+name, cell(f.kind()), cell(value), cell(text)))
		rows = f.rows(path+name+".", rows)
		if f.Items != nil {
			rows = f.Items.rows(path+name+"[].", rows)
		}
	}
	return rows
}

// kind is the type in words, with its bounds.
func (o *option) kind() string {
	text := fmt.Sprint(o.Type)
	switch {
	case len(o.Enum) > 0:
		var all []string
		for _, v := range o.Enum {
			all = append(all, "`"+strings.Trim(string(v), `"`)+"`")
		}
		return strings.Join(all, ", ")
	case strings.Contains(o.Pattern, "ns|us"):
		text = "duration"
	case o.Items != nil:
		text = "list of " + o.Items.kind()
	case o.Type == nil:
		text = "anything"
	}
	if o.Minimum != nil {
		text += " ≥ " + string(o.Minimum)
	}
	if o.Maximum != nil {
		text += " ≤ " + string(o.Maximum)
	}
	return text
}

// operator writes what one operator of a matcher does.
func operator(page *bytes.Buffer, op sdk.Operator) {
	fmt.Fprintf(page, "\n### `%s`\n\n**%s**. %s A property that is missing %s; an answer is kept %s.\n", op.ID, op.Label, op.Doc,
		map[sdk.Missing]string{sdk.MissingNoMatch: "does not match", sdk.MissingMatches: "matches"}[op.Missing]+
			map[bool]string{true: "is an error"}[op.Missing != sdk.MissingNoMatch && op.Missing != sdk.MissingMatches],
		map[sdk.Purity]string{sdk.Pure: "for ever", sdk.TimeDependent: "for a time", sdk.DataDependent: "until the data changes", sdk.Volatile: "never"}[op.Purity])
	if len(op.Examples) > 0 {
		page.WriteString("\n| value of the filter | property | |\n|---|---|---|\n")
	}
	for _, e := range op.Examples {
		now := ""
		if !e.Now.IsZero() {
			now = ", at " + e.Now.UTC().Format("Mon 2006-01-02 15:04") + " UTC"
		}
		fmt.Fprintf(page, "| `%s` | `%s` | %s%s |\n", cell(string(e.Value)), cell(string(e.Property)), strings.ReplaceAll(e.Result.String(), "_", " "), now)
	}
}

// cell is text that may stand in a table.
func cell(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "|", `\|`), "\n", " ") }
