package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// post captures events in one request.
func (e *reloadServer) post(t *testing.T, events ...string) {
	t.Helper()
	body := fmt.Sprintf(`{"api_key":%q,"batch":[%s]}`, e.ProjectKey, strings.Join(events, ","))
	res, err := http.Post(e.URL+"/batch/", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d", res.StatusCode)
	}
}

// lines returns the events in the file of a sink.
func (e *reloadServer) lines(t *testing.T, name string) (out []line) {
	t.Helper()
	text, err := os.ReadFile(e.path(name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for raw := range strings.Lines(string(text)) {
		if !strings.HasSuffix(raw, "\n") {
			break // the sink is still writing this line
		}
		l := line{raw: raw}
		if err := json.Unmarshal([]byte(raw), &l); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		out = append(out, l)
	}
	return out
}

// handledCount returns the events that a delivery has delivered or filtered.
func (e *reloadServer) handledCount(t *testing.T, name string) int {
	t.Helper()
	var p struct {
		Delivery struct{ Delivered, Filtered int }
	}
	if err := json.Unmarshal([]byte(e.mustManage(t, http.MethodGet, "/api/plugins/"+name+"/", "")), &p); err != nil {
		t.Fatal(err)
	}
	return p.Delivery.Delivered + p.Delivery.Filtered
}

type line struct {
	raw        string
	Event      string
	DistinctID string `json:"distinct_id"`
}

func names(lines []line) string {
	var out []string
	for _, l := range lines {
		out = append(out, l.Event)
	}
	return strings.Join(out, " ")
}

// TestDeliverySettings checks that the delivery section of an instance decides which
// events reach its file, and that a change does not restart the plugin.
func TestDeliverySettings(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("pepper\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := serveConfigFile(t, "")
	sinks := func(exclude string) string {
		text := ""
		for name, delivery := range map[string]string{
			"all":      "{}",
			"names":    "{events: {include: [\"order *\", \"$page*\"], exclude: [" + exclude + "]}}",
			"filtered": "{properties: [{key: plan, operator: exact, value: [pro]}], projects: {include: [1]}}",
			"nothing":  "{projects: {exclude: [1]}}",
			"sampled":  "{sample: 0.5}",
			"redacted": "{redact: {remove: [email], hash: [ip], hash_key: \"${file:" + key + "}\"}, batch: {max_events: 2, linger: 1s}}",
		} {
			text += fmt.Sprintf("    - {name: %s, kind: sink, use: file, config: {path: %s}, delivery: %s}\n", name, e.path(name), delivery)
		}
		return text
	}
	e.edit(t, sinks(`"order cancelled"`))
	ready := func() bool {
		now := e.plugins(t)
		return len(now) == 6 && !slices.ContainsFunc([]string{"all", "names", "filtered", "nothing", "sampled", "redacted"}, func(name string) bool { return now[name].State != "ready" })
	}
	e.until(t, "all are ready", ready)

	events := []string{
		`{"event":"$pageview","distinct_id":"a","properties":{"plan":"pro","email":"ada@example.com","ip":"192.0.2.1"}}`,
		`{"event":"order placed","distinct_id":"a","properties":{"plan":"free","email":"ada@example.com"}}`,
		`{"event":"order cancelled","distinct_id":"b","properties":{"plan":"pro","$set":{"email":"bob@example.com","age":7}}}`,
		`{"event":"debug","distinct_id":"c"}`,
	}
	for i := range 40 {
		events = append(events, fmt.Sprintf(`{"event":"tick","distinct_id":"person %d"}`, i%20))
	}
	e.post(t, events...)
	e.until(t, "the sinks without filters have all events", func() bool {
		return len(e.lines(t, "all")) == len(events) && len(e.lines(t, "redacted")) == len(events)
	})
	e.until(t, "the filtered sinks have their events", func() bool {
		return names(e.lines(t, "names")) == "$pageview order placed" && names(e.lines(t, "filtered")) == "$pageview order cancelled"
	})

	mac := hmac.New(sha256.New, []byte("pepper"))
	mac.Write([]byte("192.0.2.1"))
	var redacted strings.Builder
	for _, l := range e.lines(t, "redacted") {
		redacted.WriteString(l.raw)
	}
	if text := redacted.String(); strings.Contains(text, "example.com") || strings.Contains(text, "192.0.2.1") ||
		!strings.Contains(text, hex.EncodeToString(mac.Sum(nil))) || !strings.Contains(text, `"age":7`) {
		t.Errorf("redacted: %s", text)
	}

	// A sample selects distinct ids: all events of one or none.
	e.until(t, "the sample is counted", func() bool { return e.handledCount(t, "sampled") == len(events) })
	ticks := map[string]int{}
	for _, l := range e.lines(t, "sampled") {
		if l.Event == "tick" {
			ticks[l.DistinctID]++
		}
	}
	for id, n := range ticks {
		if n != 2 {
			t.Errorf("%s has %d events", id, n)
		}
	}
	if len(ticks) < 3 || len(ticks) > 17 {
		t.Errorf("half of 20 persons are %d", len(ticks))
	}
	if n := len(e.lines(t, "nothing")); n != 0 {
		t.Errorf("%d events of an excluded project", n)
	}

	// A changed delivery section starts a new delivery and keeps the plugin process.
	before := e.plugins(t)["names"]
	e.edit(t, sinks(`"$page*"`))
	e.until(t, "the new delivery counts from 0", func() bool { return e.handledCount(t, "names") == 0 && ready() })
	e.post(t, events[:4]...)
	e.until(t, "the new filters apply", func() bool {
		return names(e.lines(t, "names")) == "$pageview order placed order placed order cancelled"
	})
	if after := e.plugins(t)["names"]; after.PID != before.PID || after.Generation != before.Generation {
		t.Errorf("the plugin was restarted: %+v, was %+v", after, before)
	}
}
