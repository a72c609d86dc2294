package persons_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/persons/stage"
)

// patient is a service whose cache believes for an hour: a new value was
// forgotten by the stage, not by time.
func patient(t testing.TB, d *db.DB) *persons.Service {
	t.Helper()
	cfg := persons.DefaultConfig()
	cfg.CacheTTL, cfg.SharedCacheTTL = time.Hour, time.Hour
	return persons.New(cfg, d, zap.NewNop(), nil)
}

func properties(t testing.TB, s *persons.Service, distinctID string) string {
	t.Helper()
	raw, found, err := s.Properties(t.Context(), 1, distinctID)
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return "none"
	}
	return plain(t, raw)
}

func TestPropertiesAreFresh(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := patient(t, d)
		step := func(line, distinctID, want string) {
			t.Helper()
			if line != "" {
				process(t, s, evs(line))
			}
			for range 2 {
				if got := properties(t, s, distinctID); got != want {
					t.Fatalf("after %s: %s has %s, want %s", line, distinctID, got, want)
				}
			}
		}
		step(``, "u1", "none")
		step(`x u1`, "u1", `{}`)
		step(`$set u1 {"$set":{"a":1}}`, "u1", `{"a":1}`)
		step(``, "u2", "none")
		step(`$create_alias u1 {"alias":"u2"}`, "u2", `{"a":1}`)
		step(`$set u2 {"$set":{"b":1}}`, "u1", `{"a":1,"b":1}`)
		step(`$set anon {"$set":{"c":1}}`, "anon", `{"c":1}`)
		step(`$create_alias anon {"alias":"other"}`, "other", `{"c":1}`)
		step(`$merge_dangerously u1 {"alias":"anon"}`, "other", `{"a":1,"b":1,"c":1}`)
		step(``, "anon", `{"a":1,"b":1,"c":1}`)
	})
}

func TestGroupPropertiesAreFresh(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := patient(t, d)
		read := func(want string) {
			t.Helper()
			raw, found, err := s.GroupProperties(t.Context(), 1, "company", "acme")
			if err != nil || string(raw) != want || found != (want != "") {
				t.Fatalf("got %s %v %v, want %s", raw, found, err, want)
			}
		}
		read("")
		process(t, s, evs(`x u {"$groups":{"company":"acme"}}`))
		read("")
		process(t, s, evs(`$groupidentify u {"$group_type":"company","$group_key":"acme","$group_set":{"a":1}}`))
		read(`{"a":1}`)
		process(t, s, evs(`$groupidentify u {"$group_type":"company","$group_key":"acme","$group_set":{"b":1}}`))
		read(`{"a":1,"b":1}`)
	})
}

func TestRolledBackChangeIsNotCached(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := patient(t, d)
		process(t, s, evs(`$set u1 {"$set":{"a":1}}`))
		properties(t, s, "u1")
		sorry := errors.New("the next stage failed")
		err := d.Tx(t.Context(), func(ctx context.Context) error {
			if _, err := s.Process(ctx, evs(`$set u1 {"$set":{"a":2}}`, `x u2`)); err != nil {
				return err
			}
			if raw, _, err := s.Properties(ctx, 1, "u1"); err != nil || plain(t, raw) != `{"a":2}` {
				t.Errorf("inside the transaction: %s %v", raw, err)
			}
			return sorry
		})
		if !errors.Is(err, sorry) {
			t.Fatal(err)
		}
		if got := properties(t, s, "u1"); got != `{"a":1}` {
			t.Fatal(got)
		}
		if got := properties(t, s, "u2"); got != "none" {
			t.Fatal(got)
		}
	})
}

func TestChangeOfAnotherNodeShowsAfterTTL(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		cfg := persons.DefaultConfig()
		cfg.CacheTTL = 20 * time.Millisecond
		here, there := persons.New(cfg, d, zap.NewNop(), nil), service(t, d)
		properties(t, here, "u1")
		process(t, there, evs(`$set u1 {"$set":{"a":1}}`))
		deadline := time.Now().Add(time.Minute)
		for properties(t, here, "u1") != `{"a":1}` {
			if time.Now().After(deadline) {
				t.Fatal("never seen")
			}
			time.Sleep(time.Millisecond)
		}
	})
}

func TestCacheSize(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	cfg := persons.DefaultConfig()
	cfg.CacheBytes, cfg.CacheTTL = 20_000, time.Hour
	s := persons.New(cfg, d, zap.NewNop(), nil)
	for n := range 300 {
		id := fmt.Sprintf("u%d", n)
		process(t, s, evs(`$set `+id+` {"$set":{"n":`+fmt.Sprint(n)+`,"pad":"`+strings.Repeat("x", 500)+`"}}`))
		for range 2 {
			if got := properties(t, s, id); !strings.Contains(got, fmt.Sprintf(`"n":%d,`, n)) {
				t.Fatal(got)
			}
		}
	}
	if got := properties(t, s, "u0"); !strings.Contains(got, `"n":0,`) {
		t.Fatal(got)
	}
}

func TestSizeLimit(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		big := strings.Repeat("x", 200_000)
		set := func(key, val string) []stage.Warning {
			return process(t, s, evs(`$set u1 {"$set":{"`+key+`":"`+val+`"}}`))
		}
		for _, key := range []string{"a", "b", "c"} {
			if w := set(key, big); len(w) > 0 {
				t.Fatalf("%s: %v", key, w)
			}
		}
		w := set("email", big)
		if kinds(w) != stage.WarnPersonSize {
			t.Fatalf("warnings %v", w)
		}
		p, _, err := s.ByDistinctID(t.Context(), 1, "u1")
		if err != nil || len(p.Properties) > 524_288 {
			t.Fatalf("%d bytes, %v", len(p.Properties), err)
		}
		for key, want := range map[string]bool{"a": false, "b": false, "c": true, "email": true, "$creator_event_uuid": true} {
			if got := strings.Contains(string(p.Properties), `"`+key+`":`); got != want {
				t.Errorf("%s is there: %v, want %v: trimmed in the order of names, but for the protected", key, got, want)
			}
		}
		if w := set("name", strings.Repeat("x", 600_000)); kinds(w) != stage.WarnPersonSize || w[0].Details["rejected"] != true {
			t.Fatalf("what trimming cannot make fit is refused: %v", w)
		}
		if q, _, err := s.ByDistinctID(t.Context(), 1, "u1"); err != nil || string(q.Properties) != string(p.Properties) {
			t.Fatalf("a refused update changed the person (%v)", err)
		}
	})
}

// TestMergeAboveSizeLimit merges two persons whose protected properties exceed
// the limit together: the remaining person keeps its own.
func TestMergeAboveSizeLimit(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		big := strings.Repeat("x", 400_000)
		process(t, s, evs(`$set u1 {"$set":{"email":"`+big+`"}}`, `$set u2 {"$set":{"name":"`+big+`"}}`))
		w := process(t, s, evs(`$merge_dangerously u1 {"alias":"u2"}`))
		if kinds(w) != stage.WarnPersonSize || w[0].Details["rejected"] != true {
			t.Fatalf("warnings %v", w)
		}
		p, _, err := s.ByDistinctID(t.Context(), 1, "u2")
		if err != nil || len(p.DistinctIDs) != 2 {
			t.Fatalf("merged person %v, %v", p.DistinctIDs, err)
		}
		if text := string(p.Properties); len(text) > 655_360 || !strings.Contains(text, `"email":`) || strings.Contains(text, `"name":`) {
			t.Errorf("%d bytes of properties, want those of u1 alone", len(text))
		}
	})
}
