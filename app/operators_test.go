package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/host/settings"
)

// withCIDRMatcher adds the cidr matcher to a config.
func withCIDRMatcher(c *app.Config) {
	c.Plugins.Restart.Initial = 10 * time.Millisecond
	in := settings.Instance{Name: "networks", Use: "cidr", Kind: settings.KindMatcher}
	in.Timeouts.Health = time.Minute // the breaker must notice a hung process first
	c.Plugins.Instances = append(c.Plugins.Instances, in)
	// These tests check answers; a busy machine must not fail them.
	c.Flags.PluginTimeout, c.Operators.CompileTimeout = 50*time.Millisecond, 30*time.Second
}

// ask sends a request and returns the answer.
func (s *server) ask(t *testing.T, method, path, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequest(method, s.url(path), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.PersonalKey)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if len(answer) > 0 && json.Unmarshal(answer, &out) != nil {
		t.Fatalf("%s %s: %s", method, path, answer)
	}
	return res.StatusCode, out
}

func (s *server) flag(t *testing.T, key, filters string) int {
	t.Helper()
	status, flag := s.ask(t, "POST", "/api/projects/1/feature_flags/", `{"key":"`+key+`","filters":`+filters+`}`)
	if status != http.StatusCreated {
		t.Fatalf("flag %s: %d %v", key, status, flag)
	}
	return int(flag["id"].(float64))
}

// decide returns the flags that were computed for an address, and whether others
// were left out.
func (s *server) decide(t *testing.T, address string) string {
	t.Helper()
	status, answer := s.ask(t, "POST", "/decide?v=3", `{"api_key":"`+s.ProjectKey+`","distinct_id":"ada","person_properties":{"ip":"`+address+`"}}`)
	if status != http.StatusOK {
		t.Fatalf("decide: %d %v", status, answer)
	}
	return fmt.Sprint(answer["featureFlags"], " ", answer["errorsWhileComputingFlags"])
}

// pid waits until a plugin has a process and returns its id.
func (s *server) pid(t *testing.T, name string) (pid int) {
	t.Helper()
	s.until(t, "the plugin has a process", func() bool {
		_, status := s.ask(t, "GET", "/api/plugins/"+name, "")
		number, _ := status["pid"].(float64)
		pid = int(number)
		return pid > 0
	})
	return pid
}

// metric reads one line of GET /metrics.
func (s *server) metric(t *testing.T, name string) string {
	t.Helper()
	res, err := http.Get(s.url("/metrics"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return "no " + name
}

// eventually calls ask until it returns want.
func eventually(t *testing.T, want string, ask func() string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		got := ask()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %s, want %s", got, want)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

const (
	office = `{"groups":[{"properties":[{"key":"ip","type":"person","operator":"cidr/contains","value":["10.0.0.0/8","2001:db8::/32"]}],"rollout_percentage":100}]}`
	plain  = `{"groups":[{"rollout_percentage":100}]}`
)

// TestPluginOperatorOutage checks a condition with an operator of a plugin: while
// the plugin hangs, the answer leaves its flag out and has the others; after the
// restart it has all flags again.
func TestPluginOperatorOutage(t *testing.T) {
	t.Parallel()
	s := serve(t, withCIDRMatcher)
	s.flag(t, "office", office)
	s.flag(t, "plain", plain)

	const in, out, unknown = "map[office:true plain:true] false", "map[office:false plain:true] false", "map[plain:true] true"
	eventually(t, in, func() string { return s.decide(t, "10.1.2.3") })
	eventually(t, in, func() string { return s.decide(t, "2001:db8::1") })
	eventually(t, out, func() string { return s.decide(t, "192.0.2.1") })

	// New addresses are not in the cache.
	last := 0
	newAddress := func() string {
		last++
		return fmt.Sprintf("10.9.%d.%d", last/250, last%250)
	}
	pid := s.pid(t, "networks")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, unknown, func() string { return s.decide(t, newAddress()) })
	eventually(t, "1", func() string {
		if got := s.decide(t, newAddress()); got != unknown {
			t.Errorf("with a hung plugin: %s", got)
		}
		return s.metric(t, `guidon_operators_breaker_open{for="decide",plugin="networks"}`)
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err) // the host may have killed it first
	}
	eventually(t, in, func() string { return s.decide(t, newAddress()) })
	eventually(t, out, func() string { return s.decide(t, "192.0.2.1") })
	if now := s.pid(t, "networks"); now == pid {
		t.Error("the process was not replaced")
	}
}
