package app_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// TestRestartWithOverpricedFlag stores a flag whose regular expressions cost more than
// is allowed, as an older version could. The next server starts, reports the flag, and
// decides the others.
func TestRestartWithOverpricedFlag(t *testing.T) {
	t.Parallel()
	dbtest.RunURL(t, func(t *testing.T, url string) {
		data := filepath.Join(t.TempDir(), "data")
		change := func(c *app.Config) { c.DataDir, c.Database.URL = data, url }
		first := serve(t, change)
		for _, key := range []string{"good", "bad"} {
			first.mustManage(t, http.MethodPost, "/api/projects/1/feature_flags/", `{"key":"`+key+`","filters":{"groups":[{"properties":[],"rollout_percentage":100}]}}`)
		}
		filter := `{"key":"k","type":"person","operator":"regex","value":"` + strings.Repeat("(a?){1000}", 380) + `"}`
		filters := `{"groups":[{"properties":[` + strings.TrimSuffix(strings.Repeat(filter+",", 18), ",") + `]}]}`
		if _, err := first.DB.Write(t.Context()).ExecContext(t.Context(), fmt.Sprintf(`UPDATE feature_flags SET filters = '%s' WHERE key = 'bad'`, filters)); err != nil {
			t.Fatal(err)
		}
		if err := first.Stop(); err != nil {
			t.Fatal(err)
		}

		core, logs := observer.New(zapcore.WarnLevel)
		s := serveLogged(t, zap.New(core), change)
		s.ProjectKey, s.PersonalKey = first.ProjectKey, first.PersonalKey
		var answer string
		s.until(t, "the other flag is decided", func() bool { // Postgres may be away for a moment
			var status int
			status, answer, _ = s.request(t, http.MethodPost, s.URL+"/decide?v=3", `{"api_key":"`+s.ProjectKey+`","distinct_id":"u","person_properties":{"k":"aaaa"}}`)
			return status == http.StatusOK && strings.Contains(answer, `"good":true`)
		})
		if !strings.Contains(answer, `"errorsWhileComputingFlags":true`) || strings.Contains(answer, `"bad"`) {
			t.Errorf("decide: %s", answer)
		}
		s.until(t, "the log names the flag", func() bool {
			for _, l := range logs.FilterMessage("flag cannot be evaluated").All() {
				if l.ContextMap()["flag"] == "bad" {
					return true
				}
			}
			return false
		})
		s.until(t, "the server is ready and manages flags", func() bool {
			ready, _, _ := s.request(t, http.MethodGet, s.AdminURL+"/_readiness", "")
			managed, list, _ := s.request(t, http.MethodGet, s.URL+"/api/projects/1/feature_flags/", "")
			return ready == http.StatusOK && managed == http.StatusOK && strings.Contains(list, `"bad"`)
		})
		if status, answer, _ := s.request(t, http.MethodPost, s.URL+"/capture/", `{"api_key":"`+s.ProjectKey+`","event":"e","distinct_id":"u"}`); status != http.StatusOK {
			t.Errorf("capture: %d %s", status, answer)
		}
	})
}
