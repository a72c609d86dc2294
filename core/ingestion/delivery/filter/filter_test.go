package filter_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion/delivery/filter"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

func newFilter(t *testing.T, c settings.Delivery, registry match.Registry) *filter.Filter {
	t.Helper()
	f, err := filter.New(c, registry)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRedactPaths(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		redact           settings.Redaction
		properties, want string
	}{
		"a plain name, also of persons and groups, not deeper": {
			settings.Redaction{Remove: []string{"email"}},
			`{"email":1,"n":1.50,"$set":{"email":1,"a":2},"$group_set":{"email":1},"$unset":["email","b"],"o":{"email":3}}`,
			`{"n":1.50,"$set":{"a":2},"$group_set":{},"$unset":["b"],"o":{"email":3}}`,
		},
		"a path begins at the event": {
			settings.Redaction{Remove: []string{"$set.email"}},
			`{"email":1,"$set":{"email":1,"a":2},"$set_once":{"email":1},"$unset":["email"]}`,
			`{"email":1,"$set":{"a":2},"$set_once":{"email":1},"$unset":["email"]}`,
		},
		"a path below a property of a person": {
			settings.Redaction{Remove: []string{"address.street"}},
			`{"address":{"street":1,"city":2},"$set":{"address":{"street":1,"city":2}},"street":3}`,
			`{"address":{"city":2},"$set":{"address":{"city":2}},"street":3}`,
		},
		"each element of a list": {
			settings.Redaction{Remove: []string{"cart.items.buyer.mail"}},
			`{"cart":{"items":[{"buyer":{"mail":1,"n":2}},7,[{"buyer":{"mail":1}}],{"x":1}]}}`,
			`{"cart":{"items":[{"buyer":{"n":2}},7,[{"buyer":{}}],{"x":1}]}}`,
		},
		"names with dots": {
			settings.Redaction{Remove: []string{"a.b.c"}},
			`{"a.b.c":1,"a.b":{"c":2,"d":3},"a":{"b.c":4,"b":{"c":5,"e":6}},"a.bc":7}`,
			`{"a.b":{"d":3},"a":{"b":{"e":6}},"a.bc":7}`,
		},
		"an escaped name": {
			settings.Redaction{Remove: []string{"$set.email"}}, `{"\u0024set":{"em\u0061il":1,"a":2}}`, `{"\u0024set":{"a":2}}`,
		},
		"remove wins over hash": {
			settings.Redaction{Remove: []string{"a.b"}, Hash: []string{"a.b", "a.c"}}, `{"a":{"b":1,"c":null}}`, `{"a":{"c":null}}`,
		},
		"a path through a value that is no object": {settings.Redaction{Remove: []string{"a.b"}}, `{"a":"b"}`, `{"a":"b"}`},
	} {
		f := newFilter(t, settings.Delivery{Redact: c.redact}, nil)
		got := f.Redacted(sdk.Event{Properties: json.RawMessage(c.properties)})
		if string(got.Properties) != c.want {
			t.Errorf("%s: got %s, want %s", name, got.Properties, c.want)
		}
	}
}

func TestRedactHashesNestedValues(t *testing.T) {
	t.Parallel()
	f := newFilter(t, settings.Delivery{Redact: settings.Redaction{Hash: []string{"$set.email", "email"}, HashKey: "k"}}, nil)
	got := f.Redacted(sdk.Event{Properties: json.RawMessage(`{"email":"a@b.c","$set":{"email":"a@b.c"}}`)})
	var p struct {
		Email string
		Set   struct{ Email string } `json:"$set"`
	}
	if err := json.Unmarshal(got.Properties, &p); err != nil || len(p.Email) != 64 || p.Email != p.Set.Email {
		t.Errorf("%v: %s", err, got.Properties)
	}
}

func TestRedactIDs(t *testing.T) {
	t.Parallel()
	f := newFilter(t, settings.Delivery{Redact: settings.Redaction{Hash: []string{"distinct_id", "uuid"}, HashKey: "k"}}, nil)
	ev := sdk.Event{
		UUID: "0190a5a2-7b3c-7000-8000-0000000000ff", DistinctID: "ada@example.com", Name: "$create_alias",
		Properties: json.RawMessage(`{"distinct_id":"ada@example.com","alias":"ada@example.com","$anon_distinct_id":"ada@example.com","$user_id":"ada@example.com"}`),
	}
	if kept := f.Redacted(ev); kept.DistinctID != ev.DistinctID || kept.UUID != ev.UUID {
		t.Errorf("the server does not keep the ids: %+v", kept)
	}
	sent := f.WithRedactedIDs(f.Redacted(ev))
	id, err := uuid.Parse(sent.UUID)
	if err != nil || id.Version() != 8 || id.Variant() != uuid.RFC4122 || sent.UUID == ev.UUID || len(sent.DistinctID) != 64 {
		t.Errorf("%v: %+v", err, sent)
	}
	if again := f.WithRedactedIDs(ev); again.UUID != sent.UUID || again.DistinctID != sent.DistinctID {
		t.Errorf("another time %+v", again)
	}
	if n := strings.Count(string(sent.Properties), `"`+sent.DistinctID+`"`); n != 4 {
		t.Errorf("%d properties have the hash: %s", n, sent.Properties)
	}
	ev.Name = "purchase"
	if got := f.Redacted(ev); !strings.Contains(string(got.Properties), `"alias":"ada@example.com"`) {
		t.Errorf("the alias of another event is no id: %s", got.Properties)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]settings.Delivery{
		"distinct_id cannot be removed":          {Redact: settings.Redaction{Remove: []string{"distinct_id"}}},
		"uuid cannot be removed":                 {Redact: settings.Redaction{Remove: []string{"a", "uuid"}}},
		`"$set." is not the path`:                {Redact: settings.Redaction{Hash: []string{"$set."}}},
		`"" is not the path`:                     {Redact: settings.Redaction{Remove: []string{""}}},
		"delivery.properties[0]":                 {Properties: []map[string]any{{"key": "a", "operator": "like"}}},
		"not those of type \"person\"":           {Properties: []map[string]any{{"key": "a", "operator": "cidr/contains", "type": "person"}}},
		"delivery.properties[1]: required (key)": {Properties: []map[string]any{{"key": "a", "operator": "cidr/contains"}, {"operator": "cidr/contains"}}},
	} {
		if _, err := filter.New(c, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
