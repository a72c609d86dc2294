package main_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The test runs the commands of the guide to OpenFeature in one shell.
func TestOpenFeatureGuideRuns(t *testing.T) {
	needCommand(t, "curl", "curl")
	t.Parallel()
	s := newServer(t)
	s.start(t)
	script := strings.ReplaceAll(fencedText(t, "../../docs/openfeature.md", "sh"), "http://localhost:8000", s.url)
	if strings.Count(script, "curl ") < 8 {
		t.Fatalf("too few commands:\n%s", script)
	}
	// The guide listens to the stream for a second. On a slow machine the first event may
	// come later: then listen again.
	listen := regexp.MustCompile(`(?m)^curl -sfN .*$`)
	if len(listen.FindAllString(script, -1)) != 1 {
		t.Fatalf("the guide does not listen to one stream:\n%s", script)
	}
	script = listen.ReplaceAllStringFunc(script, func(line string) string {
		return `for n in {1..100}; do heard=$(` + line + `); echo "$heard"; case $heard in *"event: ready"*) break ;; esac; done`
	})
	cmd := exec.Command("bash", "-euxo", "pipefail", "-c", script)
	cmd.Env = append(os.Environ(), "PROJECT_KEY="+s.project, "PERSONAL_KEY="+s.personal)
	out, err := cmd.CombinedOutput()
	for _, want := range []string{
		`"key":"new-nav","reason":"TARGETING_MATCH","variant":"true","value":true`,
		`"key":"integer-flag","reason":"STATIC","variant":"ten","value":10`,
		`"eventStreams":[{"type":"sse"`, "event: ready", `"name":"integer-flag","operation":"created"`,
	} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("no %s: %v\n%s", want, err, out)
		}
	}
}
