package app_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/app"
)

// A sink filters with an operator of the cidr matcher: it waits while the matcher cannot
// start, and gets every event of the network once it does.
func TestSinkFiltersWithMatcher(t *testing.T) {
	t.Parallel()
	e := serveConfigFile(t, "    []\n")
	sink := strings.Replace(e.sink("inside", ", rotate_bytes: 64 MiB, rotate_age: 1h30m"), "}}\n", `}, delivery: {properties: [{key: ip, operator: cidr/contains, value: ["10.0.0.0/8"]}]}}`+"\n", 1)
	e.edit(t, sink)
	if answer := e.mustFailReload(t); !strings.Contains(answer, "the operator cidr/contains needs an instance of the kind matcher, and the config has none") {
		t.Errorf("without a matcher: %s", answer)
	}
	if _, err := app.Load(e.config, nil); err == nil {
		t.Error("without a matcher it starts")
	}
	e.edit(t, sink+"    - {name: networks, kind: matcher, use: cidr, restart: never, config: {wrong: 1}}\n")
	e.until(t, "the matcher is refused", func() bool {
		return strings.Contains(e.mustManage(t, http.MethodGet, "/api/plugins/", ""), `"misconfigured"`)
	})
	var want []string
	for i, ip := range []string{"10.1.2.3", "192.0.2.1", "10.9.9.9", "no address", ""} {
		uuid := fmt.Sprintf("0190bbbb-0000-7000-8000-%012d", i)
		body := fmt.Sprintf(`{"api_key":%q,"event":"e","distinct_id":"d","uuid":%q,"properties":{"ip":%q}}`, e.ProjectKey, uuid, ip)
		res, err := http.Post(e.URL+"/capture/", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if strings.HasPrefix(ip, "10.") {
			want = append(want, uuid)
		}
	}
	e.until(t, "the delivery waits", func() bool {
		one := e.mustManage(t, http.MethodGet, "/api/plugins/inside/", "")
		return strings.Contains(one, `"waiting_for_matcher"`) && strings.Contains(one, "cidr/contains")
	})
	if text, err := os.ReadFile(e.path("inside")); err == nil && len(text) > 0 {
		t.Errorf("sent without an answer: %s", text)
	}
	e.edit(t, sink+"    - {name: networks, kind: matcher, use: cidr}\n")
	e.until(t, "the events of the network", func() bool { return len(e.sinkEvents(t, "inside")) == len(want) })
	for uuid, n := range e.sinkEvents(t, "inside") {
		if n != 1 || !strings.Contains(strings.Join(want, " "), uuid) {
			t.Errorf("%s came %d times", uuid, n)
		}
	}
}
