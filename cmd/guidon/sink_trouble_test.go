package main_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// withInstance adds an instance to the config file and allows plugins without a
// checksum.
func (s *server) withInstance(t *testing.T, instance string) {
	t.Helper()
	yaml, err := os.ReadFile(s.config())
	if err != nil {
		t.Fatal(err)
	}
	text := string(yaml)
	if !strings.Contains(text, "dev: true") {
		text = strings.Replace(text, "plugins:\n", "plugins:\n  dev: true\n", 1)
	}
	write(t, s.config(), text+"    - "+instance+"\n")
}

// sinkState is the state of a sink in the answer of /api/plugins/.
type sinkState struct {
	State, Reason, Trouble string
	Restarts               int
	LastError              string `json:"last_error"`
	Delivery               struct {
		State       string
		Delivered   int
		DeadLetters int `json:"dead_letters"`
	}
}

// Events that end the process of a sink become dead letters one after the other, and the
// sink goes on: it is not quarantined for them, however many there are.
func TestPoisonEventsNeverStopASink(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.withInstance(t, fmt.Sprintf("{name: fragile, kind: sink, use: %s, config: {exit_on: poison}}", hangingPlugin(t)))
	s.start(t)
	send := func(names ...string) {
		t.Helper()
		var batch []map[string]any
		for i, name := range names {
			batch = append(batch, map[string]any{"event": name, "distinct_id": fmt.Sprint(i), "properties": map[string]any{}})
		}
		body, _ := json.Marshal(map[string]any{"api_key": s.project, "batch": batch})
		if code, err := s.post("/batch/", string(body)); err != nil || code != http.StatusOK {
			t.Fatalf("batch: %d %v", code, err)
		}
	}
	var sink sinkState
	expect := func(delivered, dead int) {
		t.Helper()
		until(t, func() string {
			sink = sinkState{}
			s.get(t, "/api/plugins/fragile/", &sink)
			if sink.Delivery.Delivered != delivered || sink.Delivery.DeadLetters != dead || sink.State != "ready" {
				return fmt.Sprintf("%+v", sink)
			}
			return ""
		})
	}
	send("good")
	expect(1, 0)
	send("poison", "poison", "poison", "poison", "poison", "good")
	expect(2, 5)
	send("poison")
	expect(2, 6)
	send("good")
	expect(3, 6)
	if sink.Restarts < 12 {
		t.Errorf("only %d restarts: the test proves nothing", sink.Restarts)
	}
	log, err := os.ReadFile(s.log.Name())
	if err != nil || strings.Contains(string(log), "plugin quarantined") {
		t.Errorf("the sink was quarantined: %v", err)
	}
}

// A sink that receives nothing is in trouble everywhere where an operator looks, although
// its process works: in the API, in the table of the command line, in readiness. A process
// whose calls do not return is restarted.
func TestASinkThatReceivesNothingIsInTrouble(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.withInstance(t, fmt.Sprintf("{name: stuck, kind: sink, use: %s, config: {in: write}, timeouts: {call: 500ms, drain: 100ms, flush: 100ms, stop: 100ms}}", hangingPlugin(t)))
	s.start(t)
	if code, err := s.post("/capture/", `{"api_key":"`+s.project+`","event":"e","distinct_id":"d"}`); err != nil || code != http.StatusOK {
		t.Fatalf("capture: %d %v", code, err)
	}
	const says = "delivery is retrying: "
	var sink sinkState
	until(t, func() string {
		sink = sinkState{}
		s.get(t, "/api/plugins/stuck/", &sink)
		if !strings.Contains(sink.Trouble, says) || sink.State == "ready" || sink.Restarts == 0 {
			return fmt.Sprintf("%+v", sink)
		}
		return ""
	})
	until(t, func() string {
		out, err := s.guidon("plugin", "status", "--key", s.personal)
		if err != nil || !strings.Contains(out, says) {
			return fmt.Sprint(out, err)
		}
		return ""
	})
	var readiness struct {
		Plugins struct {
			Trouble []struct{ Name, Trouble string }
		}
	}
	until(t, func() string {
		res, err := http.Get("http://" + s.admin + "/_readiness")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&readiness); err != nil {
			t.Fatal(err)
		}
		in := readiness.Plugins.Trouble
		if len(in) != 1 || in[0].Name != "stuck" || !strings.Contains(in[0].Trouble, says) {
			return fmt.Sprintf("%+v", in)
		}
		return ""
	})
}

// The password within a URL is in no log line, answer, dead letter or metric, in no form in
// which a plugin may print it.
func TestSecretWithinAValueIsShownNowhere(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	file := filepath.Join(s.dir, "password")
	const password = "hunter2-Zq9!x7TkLm4"
	write(t, file, password+"\n")
	s.withInstance(t, fmt.Sprintf("{name: leaky, kind: sink, use: %s, config: {secret: \"http://user:${file:%s}@host/db\"}}", hangingPlugin(t), file))
	s.start(t)
	if code, err := s.post("/capture/", `{"api_key":"`+s.project+`","event":"e","distinct_id":"d"}`); err != nil || code != http.StatusOK {
		t.Fatalf("capture: %d %v", code, err)
	}
	var sink sinkState
	until(t, func() string {
		sink = sinkState{}
		if s.get(t, "/api/plugins/leaky/", &sink); sink.Delivery.DeadLetters != 1 {
			return fmt.Sprintf("%+v", sink)
		}
		return ""
	})
	var shown strings.Builder
	for _, args := range [][]string{{"plugin", "status", "leaky"}, {"plugin", "logs", "leaky"}, {"plugin", "status"}} {
		out, err := s.guidon(append(args, "--key", s.personal)...)
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		shown.WriteString(out)
	}
	letters, err := s.guidon("deadletter", "list", "--sink", "leaky")
	if err != nil || !strings.Contains(letters, "refused") {
		t.Errorf("dead letters: %s %v", letters, err)
	}
	shown.WriteString(letters)
	for _, path := range []string{"/metrics", "/_readiness"} {
		res, err := http.Get("http://" + s.admin + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		shown.Write(text)
	}
	log, err := os.ReadFile(s.log.Name())
	if err != nil || !strings.Contains(string(log), "connect [secret]") {
		t.Errorf("the plugin's line is not in the log: %v", err)
	}
	shown.Write(log)
	for _, part := range []string{password, "Zq9", base64.StdEncoding.EncodeToString([]byte("user:" + password))[8:24]} {
		if at := strings.Index(shown.String(), part); at >= 0 {
			t.Errorf("%q appears: %s", part, shown.String()[max(0, at-200):at+60])
		}
	}
}
