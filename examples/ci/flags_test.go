package ci_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestInvitedUsersSeeTheFlag asks the server in GUIDON_URL, which examples/ci/seed.yaml
// has filled.
func TestInvitedUsersSeeTheFlag(t *testing.T) {
	url := os.Getenv("GUIDON_URL")
	if url == "" {
		t.Skip("no GUIDON_URL")
	}
	for id, want := range map[string]bool{"ada": true, "linus": false} {
		res, err := http.Post(url+"/flags/?v=2", "application/json", strings.NewReader(`{"api_key":"phc_ci_shop","distinct_id":"`+id+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var answer struct {
			Flags map[string]struct{ Enabled bool }
		}
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
		if got := answer.Flags["invited"].Enabled; got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
}
