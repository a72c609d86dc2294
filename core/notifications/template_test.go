package notifications_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/notifications"
	"github.com/guidonhq/guidon/sdk"
)

func facts() *notifications.Facts {
	return &notifications.Facts{
		Site: "https://flags.example", ProjectID: 2, ActionID: 7, ActionName: "Paid",
		Event: &sdk.Event{
			UUID: "0192f0aa-0000-7000-8000-000000000001", Name: "paid", DistinctID: "ada lovelace", ProjectID: 2,
			Timestamp:  time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
			Properties: json.RawMessage(`{"amount": 12.50, "deep": {"a.b": {"c": "d"}}, "items": [1,"x"], "$browser": "Firefox", "$groups": {"company": "acme"}, "empty": "", "null": null, "say": "<!channel> @everyone *bold*"}`),
		},
		Person: []byte(`{"name": "Ada", "email": "", "plan": {"name": "pro"}}`),
		Names:  []string{"email", "name"},
		Group: func(kind, key string) []byte {
			if kind == "company" && key == "acme" {
				return []byte(`{"name": "Acme Ltd", "seats": 5}`)
			}
			return nil
		},
	}
}

func TestTemplateTokens(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ format, want string }{
		"nothing is the default":         {"", "Paid was triggered by Ada"},
		"blanks are the default":         {" \n ", "Paid was triggered by Ada"},
		"text stays as it is":            {"Hello *world* <b>", "Hello *world* <b>"},
		"escaped brackets are brackets":  {`\[x\] [event]`, "[x] paid"},
		"a property":                     {"[event.properties.amount]", "12.50"},
		"a property within another":      {"[event.properties.deep.a.b.c]", "d"},
		"an object is JSON":              {"[event.properties.items]", `[1,"x"]`},
		"a property that is not there":   {"[event.properties.nope]", "undefined"},
		"an empty property":              {"a[event.properties.empty]b", "ab"},
		"null is null":                   {"[event.properties.null]", "null"},
		"a property of the person":       {"[person.properties.plan.name]", "pro"},
		"one the person has not":         {"[person.properties.nope]", "undefined"},
		"the person's page":              {"[person.link]", "https://flags.example/project/2/person/ada%20lovelace"},
		"the person has a name":          {"[person] [person.name] [user.name]", "Ada Ada Ada"},
		"the browser":                    {"[user.browser]", "Firefox"},
		"the action":                     {"[action.name] [action.link]", "Paid https://flags.example/project/2/action/7"},
		"source is the action":           {"[source.name]", "Paid"},
		"the event":                      {"[event] [event.name] [event.event] [event.distinct_id]", "paid paid paid ada lovelace"},
		"when it was":                    {"[event.timestamp]", "2026-03-04T05:06:07Z"},
		"its uuid":                       {"[event.uuid]", "0192f0aa-0000-7000-8000-000000000001"},
		"its page":                       {"[event.link]", "https://flags.example/project/2/events/0192f0aa-0000-7000-8000-000000000001/2026-03-04T05:06:07Z"},
		"a group has a name":             {"[groups.company]", "Acme Ltd"},
		"a group's page":                 {"[groups.company.link]", "https://flags.example/project/2/groups/company/acme"},
		"a property of a group":          {"[groups.company.properties.seats]", "5"},
		"one the group has not":          {"[groups.company.properties.nope]", "undefined"},
		"a group the event has not":      {"[groups.team]", "(event without 'team')"},
		"blanks in a token mean nothing": {"[ event . name ]", "paid"},
		"letters of every alphabet":      {"→ [event.name] ←", "→ paid ←"},
		"a backslash is one":             {`a\b`, `a\b`},
		"event data is never a token":    {"[event.properties.say]", "<!channel> @everyone *bold*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tpl, err := notifications.ParseTemplate(c.format)
			if err != nil {
				t.Fatal(err)
			}
			segments, text := tpl.Render(facts())
			if text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
			var joined strings.Builder
			for _, s := range segments {
				joined.WriteString(s.Value)
			}
			if joined.String() != text {
				t.Errorf("the segments say %q", joined.String())
			}
		})
	}
}

func TestTemplateErrorsNameTheColumn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ format, want string }{
		"an unknown token":           {"Hi [unknown.name]", "Column 4: [unknown.name] is not known"},
		"columns are characters":     {"→→ [unknown]", "Column 4:"},
		"an unknown second word":     {"[event.colour]", "after event comes"},
		"an action has no more":      {"[action.tags]", "after action comes name, link"},
		"a property has a name":      {"[event.properties]", "names no property"},
		"nothing comes after a name": {"[action.name.x]", "nothing comes after action.name"},
		"nor after a uuid":           {"[event.uuid.x]", "nothing comes after event.uuid"},
		"a group has no more":        {"[groups.company.seats]", "after a group comes link or properties"},
		"a property of a group":      {"[groups.company.properties]", "names no property"},
		"a word that is empty":       {"[person.properties.]", "has an empty word"},
		"a group without a name":     {"[groups.]", "has an empty word"},
		"a bracket that is open":     {"Hi [event", "Column 4: there is no ]"},
		"a bracket in a bracket":     {"[event[x]]", "Column 1: there is no ]"},
		"a bracket that is closed":   {"Hi ]", "Column 4: there is no ["},
		"an empty token":             {"[]", "Column 1: [] is not known"},
		"too many":                   {strings.Repeat("[event] ", 60), "at most 100 parts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := notifications.ParseTemplate(c.format)
			if err == nil || !fault.Is(err, fault.Invalid) {
				t.Fatalf("%v is not Invalid", err)
			}
			if f := fault.From(err); f.Attr != "chat_message_format" || !strings.Contains(f.Detail, c.want) {
				t.Errorf("%s: %s, want %q", f.Attr, f.Detail, c.want)
			}
		})
	}
}

func TestLongMessageIsTruncatedBetweenCharacters(t *testing.T) {
	t.Parallel()
	f := facts()
	long, _ := json.Marshal(map[string]string{"long": strings.Repeat("ä", 3000)})
	f.Event.Properties = long
	tpl, err := notifications.ParseTemplate(strings.Repeat("[event.properties.long]", 20))
	if err != nil {
		t.Fatal(err)
	}
	_, text := tpl.Render(f)
	if n := len([]rune(text)); n > 4000 || strings.ContainsRune(text, '\uFFFD') {
		t.Errorf("%d characters", n)
	}
	if !strings.Contains(text, "…") {
		t.Error("the truncation is not marked")
	}
}

func TestNoLinksWithoutSiteURL(t *testing.T) {
	t.Parallel()
	f := facts()
	f.Site = ""
	tpl, err := notifications.ParseTemplate("[action.name] [person] [event] [groups.company] [action.link][person.link][event.link][groups.company.link]")
	if err != nil {
		t.Fatal(err)
	}
	segments, text := tpl.Render(f)
	if text != "Paid Ada paid Acme Ltd " {
		t.Errorf("got %q", text)
	}
	for _, s := range segments {
		if s.Href != "" || s.Kind == sdk.SegmentLink {
			t.Errorf("%+v leads somewhere", s)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"", "[event]", `\[ [person.properties.a.b]`, "[groups.x.properties.y]", "[[", "]", "[event.properties.\xff]"} {
		f.Add(s, `{"a":{"b":1}}`)
	}
	f.Fuzz(func(t *testing.T, format, properties string) {
		tpl, err := notifications.ParseTemplate(format)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%v is not Invalid", err)
			}
			return
		}
		x := facts()
		x.Event.Properties, x.Person = json.RawMessage(properties), []byte(properties)
		if _, text := tpl.Render(x); len([]rune(text)) > 4001 {
			t.Errorf("%d characters", len([]rune(text)))
		}
	})
}
