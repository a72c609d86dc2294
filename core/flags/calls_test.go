package flags_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/flags/calls"
	"github.com/guidonhq/guidon/core/flags/revision"
	"github.com/guidonhq/guidon/sdk"
)

func event(name, properties string, at time.Time) *sdk.Event {
	return &sdk.Event{ProjectID: 1, Name: name, DistinctID: "a", Timestamp: at, ReceivedAt: at, Properties: json.RawMessage(properties)}
}

// refreshes counts refreshes of memory.
type refreshes struct{ n int }

func (r *refreshes) Refresh(context.Context, int64) error { r.n++; return nil }

func TestStaleFlags(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
		h.at(start)
		all := h.create(`{"key":"all"}`)
		some := h.create(`{"key":"some","filters":{"groups":[{"properties":[],"rollout_percentage":50}]}}`)
		h.create(`{"key":"one-variant","filters":{"groups":[{"variant":"b"}],"multivariate":{"variants":[{"key":"a","rollout_percentage":50},{"key":"b","rollout_percentage":50}]}}}`)
		h.create(`{"key":"two-variants","filters":{"groups":[{}],"multivariate":{"variants":[{"key":"a","rollout_percentage":50},{"key":"b","rollout_percentage":50}]}}}`)
		h.create(`{"key":"off","active":false}`)
		stale := func() string {
			t.Helper()
			var p page[flag]
			h.do("GET", base+"?active=STALE&order=key", "").want(200).into(&p)
			var keys []string
			for _, f := range p.Results {
				if f.Status != "STALE" {
					t.Errorf("%s is listed as stale and is %s", f.Key, f.Status)
				}
				keys = append(keys, f.Key)
			}
			return strings.Join(keys, " ")
		}
		if got := stale(); got != "" {
			t.Errorf("new flags are stale: %s", got)
		}
		h.at(start.Add(31 * 24 * time.Hour))
		if got := stale(); got != "all one-variant" {
			t.Errorf("never called for 31 days: %s", got)
		}
		stage := calls.NewStage(calls.NewStore(h.db), h.revisions, projects{})
		call := func(key string, at time.Time) {
			t.Helper()
			batch := []*sdk.Event{event("$feature_flag_called", `{"$feature_flag":"`+key+`","$feature_flag_response":true}`, at), event("$pageview", `{`, at)}
			if err := stage.Process(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
		call("all", start.Add(30*24*time.Hour))
		call("some", start.Add(5*24*time.Hour))
		call("some", start)
		call("unknown", start)
		if got := stale(); got != "one-variant" {
			t.Errorf("after a call: %s", got)
		}
		h.at(start.Add(40 * 24 * time.Hour))
		if got := stale(); got != "one-variant some" {
			t.Errorf("35 days after the last call of some: %s", got)
		}
		var s struct {
			Status, Reason string
			LastCalled     string `json:"last_called_at"`
		}
		h.do("GET", path(some.ID)+"status/", "").want(200).into(&s)
		if s.Status != "STALE" || s.LastCalled != "2024-01-06T00:00:00.000000Z" || !strings.Contains(s.Reason, "2024-01-06") {
			t.Errorf("status: %+v", s)
		}
		h.do("GET", path(all.ID)+"status/", "").want(200).into(&s)
		if s.Status != "ACTIVE" {
			t.Errorf("status: %+v", s)
		}
		h.do("GET", path(99)+"status/", "").fails(404, "not_found", "")
	})
}

func TestNewGroupTypesRefreshOnce(t *testing.T) {
	t.Parallel()
	h := onOne(t)
	var memory refreshes
	stage := calls.NewStage(calls.NewStore(h.db), revision.NewWriter(revision.NewStore(h.db), &memory, nil), projects{})
	now := time.Now()
	for range 3 {
		batch := []*sdk.Event{event("x", `{"$groups":{"company":"acme","sixth":"z"}}`, now), event("$groupidentify", `{"$group_type":"project","$group_key":"p"}`, now)}
		if err := stage.Process(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	if memory.n != 1 {
		t.Errorf("got %d refreshes, want 1", memory.n)
	}
}

func TestRolledBackCallIsRecordedAgain(t *testing.T) {
	t.Parallel()
	h := onOne(t)
	h.create(`{"key":"a"}`)
	stage := calls.NewStage(calls.NewStore(h.db), h.revisions, projects{})
	at := time.Now().Add(-time.Hour)
	batch := []*sdk.Event{event("$feature_flag_called", `{"$feature_flag":"a"}`, at)}
	broken := errors.New("broken")
	if err := h.db.Tx(t.Context(), func(ctx context.Context) error {
		return errors.Join(stage.Process(ctx, batch), broken)
	}); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if err := stage.Process(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	var s struct {
		LastCalled *string `json:"last_called_at"`
	}
	h.do("GET", path(1)+"status/", "").want(200).into(&s)
	if s.LastCalled == nil {
		t.Error("the call is not recorded after a rollback")
	}
}
