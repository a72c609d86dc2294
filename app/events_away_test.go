package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// A server starts without its ClickHouse, takes events, and shows the trouble.
func TestClickHouseAwayAtTheStart(t *testing.T) {
	s := serve(t, func(c *app.Config) {
		c.Database.URL, c.Events.URL = dbtest.PostgresURL(t), "clickhouse://127.0.0.1:9/guidon"
	})
	s.capture(t, `{"event":"seen","distinct_id":"ada"}`)
	var report struct {
		Status string
		Events struct {
			State, Message string
			Outbox         struct{ Events int }
		}
	}
	s.until(t, "the event waits for ClickHouse", func() bool {
		status, answer, _ := s.request(t, http.MethodGet, s.AdminURL+"/_readiness", "")
		if err := json.Unmarshal([]byte(answer), &report); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s: %v", status, answer, err)
		}
		return report.Events.State == "unavailable" && report.Events.Outbox.Events == 1
	})
	if report.Status != "degraded" || !strings.Contains(report.Events.Message, "not reachable") {
		t.Errorf("%+v", report)
	}
}
