package plugins_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/plugins"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/plugintest/inspect"
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
	if rows := rows(inspect.Options(sdk.Schema(configOf(p, kind)))); len(rows) > 0 {
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

// rows are a line for each option.
func rows(options []inspect.Option) (rows []string) {
	for _, o := range options {
		value := "`" + string(o.Default) + "`"
		if o.Required {
			value = "required"
		} else if o.Default == nil {
			value = ""
		}
		text := o.Doc
		if o.Secret {
			text += " A secret: write `${env:NAME}` or `${file:/path}`."
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", o.Name, cell(typeOf(o)), cell(value), cell(text)))
	}
	return rows
}

// typeOf is the type in words, with its bounds.
func typeOf(o inspect.Option) string {
	if len(o.Enum) > 0 {
		return "`" + strings.Join(o.Enum, "`, `") + "`"
	}
	text := o.Type
	if o.Minimum != "" {
		text += " ≥ " + string(o.Minimum)
	}
	if o.Maximum != "" {
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
