package flags_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/revision"
	"github.com/guidonhq/guidon/core/match"
)

// slowOperator is the operator test/slow of a plugin, whose check of a value
// waits for release if begun is set.
type slowOperator struct{ begun, release chan struct{} }

func (o *slowOperator) Operator(id string) (match.ExternalOperator, bool) {
	return match.ExternalOperator{Source: "test", Compile: func([]byte) (match.Compiled, error) {
		if o.begun != nil {
			o.begun <- struct{}{}
			<-o.release
		}
		return match.Compiled{Program: "slow"}, nil
	}}, id == "test/slow"
}

// soon is a generous bound of the time of a test on a slow machine.
const soon = 20 * time.Second

// bomb returns filters of 69 KB whose regular expressions compile to two
// gigabytes.
func bomb() string {
	filter := `{"key":"k","operator":"regex","value":"` + strings.Repeat("(a?){1000}", 380) + `"}`
	return `{"groups":[{"properties":[` + strings.TrimSuffix(strings.Repeat(filter+",", 18), ",") + `]}]}`
}

func TestRegularExpressionsOverTheLimitAreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		began := time.Now()
		h.do("POST", base, `{"key":"a","filters":`+bomb()+`}`).fails(400, match.CodeTooLarge, "filters")
		f := h.create(`{"key":"a","filters":{"groups":[{"properties":[{"key":"k","operator":"regex","value":"^a{100}$"}]}]}}`)
		h.patch(f.ID, `{"filters":`+bomb()+`}`).fails(400, match.CodeTooLarge, "filters")
		many := strings.TrimSuffix(strings.Repeat(`{"key":"k","type":"person","operator":"regex","value":"a{900}"},`, 60), ",")
		h.patch(f.ID, `{"filters":{"groups":[{"properties":[`+many+`]}]}}`).fails(400, match.CodeTooLarge, "filters")
		h.do("POST", cohortsPath, `{"name":"c","filters":{"properties":{"type":"AND","values":[`+many+`]}}}`).fails(400, match.CodeTooLarge, "filters")
		if took := time.Since(began); took > soon {
			t.Errorf("took %s", took)
		}
	})
}

func TestRegularExpressionsOfAProjectAddUp(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		half := strings.TrimSuffix(strings.Repeat(`{"key":"k","type":"person","operator":"regex","value":"a{990}"},`, 49), ",")
		for i := range 10 {
			h.create(fmt.Sprintf(`{"key":"f%d","filters":{"groups":[{"properties":[%s]}]}}`, i, half))
		}
		h.do("POST", base, `{"key":"more","filters":{"groups":[{"properties":[`+half+`]}]}}`).fails(400, match.CodeTooLarge, "filters")
		h.do("POST", cohortsPath, `{"name":"c","filters":{"properties":{"type":"AND","values":[`+half+`]}}}`).fails(400, match.CodeTooLarge, "filters")
		h.create(`{"key":"plain"}`)
	})
}

// TestStoredBombFailsAlone has a flag that was stored before there was a limit.
func TestStoredBombFailsAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		good, bad := h.create(`{"key":"good","filters":{"groups":[{}]}}`), h.create(`{"key":"bad","filters":{"groups":[{}]}}`)
		h.sql(fmt.Sprintf(`UPDATE feature_flags SET filters = '%s' WHERE id = %d`, bomb(), bad.ID))
		err := h.revisions.Change(t.Context(), 1, func(ctx context.Context) error {
			return revision.Mark(ctx, h.db, 1, revision.Flag, bad.ID)
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := h.snapshots.RefreshAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := map[string]eval.Cause{}
		for _, d := range h.snapshots.Set(1).Evaluate(&eval.Request{DistinctID: "u"}, nil, time.Now()) {
			got[d.Key] = d.Failed
		}
		if got["good"] != eval.CauseNone || got["bad"] != eval.CauseTooLarge {
			t.Errorf("%v", got)
		}
		var status struct{ Status, Reason string }
		h.do("GET", path(bad.ID)+"status/", "").want(200).into(&status)
		if status.Status != "ACTIVE" || !strings.Contains(status.Reason, "too large") {
			t.Errorf("%+v", status)
		}
		h.do("GET", path(good.ID)+"status/", "").want(200).into(&status)
		if strings.Contains(status.Reason, "too large") {
			t.Errorf("%+v", status)
		}
		explained := h.snapshots.Set(1).Explain(&eval.Request{DistinctID: "u", FlagKeys: []string{"bad"}}, nil, time.Now())[0]
		if explained.Computed || explained.Failure != "regex_too_large" {
			t.Errorf("%+v", explained)
		}
		h.patch(bad.ID, `{"filters":{"groups":[{}]}}`).want(200)
		if h.snapshots.Set(1).Problem(bad.ID) != nil {
			t.Error("the repaired flag still fails")
		}
		if took := time.Since(began); took > soon {
			t.Errorf("took %s", took)
		}
	})
}

// TestFiltersAreCheckedBeforeTheTransaction writes while the check of a filter
// waits: SQLite has one writer.
func TestFiltersAreCheckedBeforeTheTransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		slow := `[{"key":"k","type":"person","operator":"test/slow","value":1}]`
		f := h.create(`{"key":"existing","filters":{"groups":[{"properties":` + slow + `}]}}`)
		h.patch(f.ID, `{"filters":{"groups":[{}]}}`).want(200)
		for i, c := range []struct{ method, path, body string }{
			{"POST", base, `{"key":"new","filters":{"groups":[{"properties":` + slow + `}]}}`},
			{"POST", path(f.ID) + "rollback/", `{"version":1}`},
			{"PATCH", path(f.ID), `{"filters":{"groups":[{"properties":` + slow + `}]}}`},
			{"POST", cohortsPath, `{"name":"c","filters":{"properties":{"type":"AND","values":` + slow + `}}}`},
		} {
			h.operators.begun, h.operators.release = make(chan struct{}), make(chan struct{})
			done := make(chan answer, 1)
			go func() { done <- h.do(c.method, c.path, c.body) }()
			<-h.operators.begun
			h.create(fmt.Sprintf(`{"key":"meanwhile%d"}`, i)) // waits for ever if the check holds the lock
			close(h.operators.release)
			a := answer{}
			for a.status == 0 {
				select {
				case <-h.operators.begun: // the filter is compiled again
				case a = <-done:
				}
			}
			if a.status >= 300 {
				t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.body)
			}
			h.operators.begun = nil
		}
	})
}

// TestReferencesAreCheckedInTheTransaction deletes what filters refer to after
// they were checked.
func TestReferencesAreCheckedInTheTransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		c := h.cohort(`{"name":"c","filters":{"properties":{"type":"AND","values":[{"key":"k","type":"person","value":1}]}}}`)
		h.operators.begun, h.operators.release = make(chan struct{}), make(chan struct{})
		done := make(chan answer, 1)
		body, _ := json.Marshal(map[string]any{"key": "new", "filters": map[string]any{"groups": []any{map[string]any{"properties": []any{
			map[string]any{"key": "id", "type": "cohort", "value": c.ID}, map[string]any{"key": "k", "operator": "test/slow", "value": 1},
		}}}}})
		go func() { done <- h.do("POST", base, string(body)) }()
		<-h.operators.begun
		h.do("PATCH", fmt.Sprintf("%s%d/", cohortsPath, c.ID), `{"deleted":true}`).want(200)
		close(h.operators.release)
		a := <-done
		h.operators.begun = nil
		a.fails(400, "cohort_does_not_exist", "filters")
	})
}
