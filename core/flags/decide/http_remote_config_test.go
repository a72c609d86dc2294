package decide_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/flags/decide"
)

// posthog-js 1.449 loads the script of surveys on each page view when the remote
// config has the member surveys, also when it is false. Clients of /decide read
// false there and load nothing.
func TestRemoteConfigNamesNoSurveys(t *testing.T) {
	t.Parallel()
	base := serve(t, sampleProject(), decide.Lookups{})
	for _, path := range []string{"/array/phc_test/config", "/array/phc_test/config.js"} {
		body := get(t, base+path)
		if strings.Contains(body, `"surveys"`) || !strings.Contains(body, `"heatmaps":false`) || !strings.Contains(body, `"hasFeatureFlags":true`) {
			t.Errorf("%s: %s", path, body)
		}
	}
	if _, got, _ := post(t, base+"/decide/?v=3", "application/json", `{"api_key":"phc_test","distinct_id":"u"}`); got["surveys"] != false {
		t.Errorf("/decide: surveys are %v, want false", got["surveys"])
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("GET %s = %d, %v: %s", url, res.StatusCode, err, body)
	}
	return string(body)
}
