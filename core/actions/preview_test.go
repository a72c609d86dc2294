package actions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/actions"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/web/webtest"
	"github.com/guidonhq/guidon/sdk"
)

// memoryEvents is an event store with a few events, newest first.
type memoryEvents []sdk.Event

func (s memoryEvents) List(_ context.Context, _ int64, f events.Filter, limit int) ([]sdk.Event, events.Cursor, error) {
	var out []sdk.Event
	for _, ev := range s {
		if (f.Event == "" || f.Event == ev.Name) && (f.DistinctID == "" || f.DistinctID == ev.DistinctID) && len(out) < limit {
			out = append(out, ev)
		}
	}
	return out, events.Cursor{}, nil
}

// storedFacts is one person, ada, who is in cohort 7.
type storedFacts struct{}

func (storedFacts) Properties(_ context.Context, _ int64, distinctID string) ([]byte, bool, error) {
	return []byte(`{"email":"` + distinctID + `@example.com"}`), true, nil
}

func (storedFacts) GroupProperties(context.Context, int64, string, string) ([]byte, bool, error) {
	return nil, false, nil
}

func (storedFacts) GroupTypes(context.Context, int64) (map[string]int, error) { return nil, nil }

func (storedFacts) InCohort(_ context.Context, _, cohortID int64, distinctID string) (match.Result, error) {
	return match.Of(cohortID == 7 && distinctID == "ada"), nil
}

// pluginOperators is one operator of a plugin.
type pluginOperators struct{}

func (pluginOperators) Operator(id string) (match.ExternalOperator, bool) {
	return match.ExternalOperator{
		Missing: match.False,
		Compile: func(value []byte) (match.Compiled, error) { return match.Compiled{Program: match.Program(value)}, nil },
	}, id == "cidr/contains"
}

const (
	isAda     = `{"key":"email","type":"person","value":"ada@example.com"}`
	isInSeven = `{"key":"id","type":"cohort","value":7}`
)

// resultText prints a match result: true, false or unknown.
func resultText(b *bool) string {
	if b == nil {
		return "unknown"
	}
	return strconv.FormatBool(*b)
}

func someEvents() memoryEvents {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return memoryEvents{
		{UUID: "3", Name: "paid", DistinctID: "ada", Timestamp: at, Properties: []byte(`{"$current_url":"https://shop.example/checkout","amount":9}`)},
		{UUID: "2", Name: "$autocapture", DistinctID: "bob", Timestamp: at.Add(-time.Minute), Properties: []byte(`{}`), ElementsChain: `a:text="Buy"`},
		{UUID: "1", Name: "paid", DistinctID: "bob", Timestamp: at.Add(-time.Hour), Properties: []byte(`{"amount":1}`)},
	}
}

// preview asks the route and returns the status and the answer.
func preview(t *testing.T, who webtest.Keys, deps actions.PreviewDependencies, body string) (int, map[string]any) {
	t.Helper()
	base := webtest.Serve(t, who, actions.NewPreviewHTTP(actions.NewPreviews(deps)))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/api/projects/1/actions/preview/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer phx_test")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var out map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, out
}

func TestPreview(t *testing.T) {
	t.Parallel()
	deps := actions.PreviewDependencies{Events: someEvents(), Sources: actionmatch.Sources{Persons: storedFacts{}, Members: storedFacts{}, Operators: pluginOperators{}}}
	cases := []struct {
		name, body string
		want       string // checked, matched, unknown; then uuid=answer of each
	}{
		{"the newest events", `{"steps":[{"event":"paid"}]}`, "3 2 0 3=true 2=false 1=true"},
		{"no steps match nothing", `{"steps":[]}`, "3 0 0 3=false 2=false 1=false"},
		{"a few", `{"steps":[{"event":"paid"}],"limit":1}`, "1 1 0 3=true"},
		{"of one name", `{"steps":[{"url":"/checkout"}],"event":"paid"}`, "2 1 0 3=true 1=false"},
		{"of one person", `{"steps":[{"text":"Buy"}],"distinct_id":"bob","event":null}`, "2 1 0 2=true 1=false"},
		{"what a person is like", `{"steps":[{"properties":[` + isAda + `]}]}`, "3 1 0 3=true 2=false 1=false"},
		{"who is in a cohort", `{"steps":[{"properties":[` + isInSeven + `]}]}`, "3 1 0 3=true 2=false 1=false"},
		{"undecided events", `{"steps":[{"properties":[{"key":"amount","operator":"cidr/contains","value":"x"}]}]}`, "3 0 2 3=<nil> 2=false 1=<nil>"},
		{"an object of values", `{"steps":[{"properties":{"amount__gt":5}}]}`, "3 1 0 3=true 2=false 1=false"},
		{"an object that is one filter", `{"steps":[{"properties":{"key":"amount","value":1}}]}`, "3 1 0 3=false 2=false 1=true"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			status, got := preview(t, webtest.DefaultKeys(), deps, c.body)
			if status != http.StatusOK {
				t.Fatalf("%d %v", status, got)
			}
			text := fmt.Sprintf("%v %v %v", got["checked"], got["matched"], got["unknown"])
			for _, r := range got["results"].([]any) {
				one := r.(map[string]any)
				text += fmt.Sprintf(" %v=%v", one["event"].(map[string]any)["uuid"], one["matches"])
			}
			if text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

func TestPreviewExplainsMismatches(t *testing.T) {
	t.Parallel()
	p := actions.NewPreviews(actions.PreviewDependencies{Events: someEvents()})
	steps := []actionmatch.Step{{
		ID: "s1", Name: "checkout", Event: "paid", URL: "/Checkout", TagName: "a", Text: "Buy",
		Properties: []json.RawMessage{[]byte(`{"key":"amount","operator":"gt","value":5}`), []byte(`{"key":"plan","value":"pro"}`), []byte(isAda)},
	}}
	out, err := p.Preview(t.Context(), 1, steps, actions.PreviewQuery{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	step := out.Results[0].Steps[0]
	got := fmt.Sprintf("%s %s %v", step.ID, step.Name, resultText(step.Matches))
	for _, f := range step.Fields {
		got += fmt.Sprintf("\n%s %s %s %s: %v %s", f.Attr, f.Matching, f.Expected, f.Seen, resultText(f.Matches), f.Reason)
	}
	want := `s1 checkout false
steps__0__event exact "paid" "paid": true 
steps__0__url contains "/Checkout" "https://shop.example/checkout": false It does not contain the text.
steps__0__tag_name exact "a" : false The event has no elements.
steps__0__text exact "Buy" : false The event has no elements.
steps__0__properties__0 gt 5 9: true 
steps__0__properties__1 exact "pro" : false There is no such property.
steps__0__properties__2 exact "ada@example.com" : unknown The properties of the person are not known.`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// plugin answers for operators in the second round.
type plugin struct{ noted, asked bool }

func (p *plugin) Match(match.Program, *match.Value) match.Result {
	p.noted = true
	if p.asked {
		return match.True
	}
	return match.Unknown
}

func (p *plugin) Ask(context.Context) bool {
	p.asked = p.noted
	return p.noted
}

func TestPreviewCallsPluginsOnce(t *testing.T) {
	t.Parallel()
	p := actions.NewPreviews(actions.PreviewDependencies{
		Events:  someEvents(),
		Sources: actionmatch.Sources{Operators: pluginOperators{}, Plugins: func() actionmatch.Plugins { return new(plugin) }},
	})
	steps := []actionmatch.Step{{Properties: []json.RawMessage{[]byte(`{"key":"amount","operator":"cidr/contains","value":"x"}`)}}}
	out, err := p.Preview(t.Context(), 1, steps, actions.PreviewQuery{Limit: 10})
	if err != nil || out.Matched != 2 || out.Unknown != 0 {
		t.Errorf("%d match, %d undecided, %v", out.Matched, out.Unknown, err)
	}
}

func TestPreviewReadsFewerEventsForLongDefinitions(t *testing.T) {
	t.Parallel()
	many := make(memoryEvents, 400)
	for i := range many {
		many[i] = sdk.Event{Name: "e"}
	}
	steps := make([]actionmatch.Step, 100)
	p := actions.NewPreviews(actions.PreviewDependencies{Events: many})
	out, err := p.Preview(t.Context(), 1, steps, actions.PreviewQuery{Limit: 400})
	if err != nil || out.Checked < 1 || out.Checked > 100 || out.Matched != out.Checked {
		t.Errorf("%d of %d match, %v", out.Matched, out.Checked, err)
	}
}

func TestPreviewRejectsInvalidInput(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, body, attr, code string }{
		{"no steps", `{}`, "steps", "required"},
		{"null", `{"steps":null}`, "steps", "null"},
		{"no list", `{"steps":{}}`, "steps", "not_a_list"},
		{"a step that is none", `{"steps":[1]}`, "steps__0", "invalid_input"},
		{"a text that is none", `{"steps":[{"url":{}}]}`, "steps__0__url", "invalid_input"},
		{"a choice", `{"steps":[{},{"url_matching":"is"}]}`, "steps__1__url_matching", "invalid_choice"},
		{"properties that are none", `{"steps":[{"properties":5}]}`, "steps__0__properties", "not_a_list"},
		{"a filter's value", `{"steps":[{"properties":[{"key":"a","operator":"regex","value":"("}]}]}`, "steps__0__properties__0__value", "invalid_input"},
		{"too many events", `{"steps":[],"limit":501}`, "limit", ""},
		{"no events", `{"steps":[],"limit":0}`, "limit", ""},
		{"too many steps", `{"steps":[` + strings.Repeat("{},", 100) + `{}]}`, "steps", "max_length"},
		{"too many filters", `{"steps":[{"properties":[` + strings.Repeat(isAda+",", 100) + isAda + `]}]}`, "steps__0__properties", "max_length"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			status, got := preview(t, webtest.DefaultKeys(), actions.PreviewDependencies{Events: someEvents()}, c.body)
			if status != http.StatusBadRequest || got["attr"] != c.attr || c.code != "" && got["code"] != c.code {
				t.Errorf("%d %v", status, got)
			}
		})
	}
}

func TestPreviewRequiresScope(t *testing.T) {
	t.Parallel()
	who := webtest.DefaultKeys()
	who.Principals["phx_test"] = &auth.Principal{KeyID: 1, Scopes: []string{"feature_flag:read"}, User: auth.User{ID: 1}}
	if status, got := preview(t, who, actions.PreviewDependencies{Events: someEvents()}, `{"steps":[]}`); status != http.StatusForbidden {
		t.Errorf("%d %v", status, got)
	}
	deps := actions.PreviewDependencies{Events: someEvents(), Sources: actionmatch.Sources{Persons: storedFacts{}, Members: storedFacts{}}}
	isBob := `{"steps":[{"properties":[{"key":"email","type":"person","value":"bob@example.com"}]}]}`
	for scopes, want := range map[string]struct {
		status int
		shown  bool
	}{
		"action:read":                        {http.StatusForbidden, false},
		"action:read event:read":             {http.StatusOK, false},
		"action:read event:read person:read": {http.StatusOK, true},
	} {
		who.Principals["phx_test"] = &auth.Principal{KeyID: 1, Scopes: strings.Fields(scopes), User: auth.User{ID: 1}}
		status, got := preview(t, who, deps, isBob)
		text := fmt.Sprint(got)
		if status != want.status || strings.Contains(text, "ada@example.com") != want.shown || strings.Contains(text, "hidden:true") != (status == http.StatusOK && !want.shown) {
			t.Errorf("%s: %d %v", scopes, status, got)
		}
	}
}

func TestPreviewShowsTheURLOfEachEvent(t *testing.T) {
	t.Parallel()
	var stored memoryEvents
	for i := range 3 {
		stored = append(stored, sdk.Event{UUID: fmt.Sprint(i), Name: "seen", Properties: fmt.Appendf(nil, `{"$current_url":"https://shop.example/%d"}`, i)})
	}
	_, got := preview(t, webtest.DefaultKeys(), actions.PreviewDependencies{Events: stored, Sources: actionmatch.Sources{Persons: storedFacts{}, Members: storedFacts{}}}, `{"steps":[{"event":"seen"}]}`)
	for i, r := range got["results"].([]any) {
		if url := r.(map[string]any)["event"].(map[string]any)["url"]; url != fmt.Sprintf("https://shop.example/%d", i) {
			t.Errorf("event %d has the URL %v", i, url)
		}
	}
}
