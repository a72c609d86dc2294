package main_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestStdoutSinkPrintsToServerOutput(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	yaml := "plugins:\n  instances:\n    - name: console\n      kind: sink\n      use: stdout\n"
	if err := os.WriteFile(s.config(), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	code, err := s.post("/capture/", fmt.Sprintf(`{"api_key": %q, "event": "seen on the console", "distinct_id": "ada"}`, s.project))
	if err != nil || code != http.StatusOK {
		t.Fatal(code, err)
	}
	until(t, func() string {
		output, _ := os.ReadFile(s.log.Name())
		for line := range strings.Lines(string(output)) {
			if strings.HasPrefix(line, `{"uuid":`) && strings.Contains(line, `"event":"seen on the console"`) {
				return ""
			}
		}
		return "the event is not printed"
	})
}
