package app_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/plugins"
)

// serveWithActions runs the whole server with a webhook notifier whose endpoint
// accepts every post.
func serveWithActions(dir string) {
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	cfg := app.DefaultConfig()
	cfg.DataDir, cfg.HTTP.Address, cfg.HTTP.AdminAddress, cfg.HTTP.AccessLog = dir, "127.0.0.1:0", "127.0.0.1:0", web.LogServerErrors
	cfg.Plugins.Instances = []settings.Instance{{
		Name: "hook", Kind: "notifier", Use: "webhook", Config: map[string]any{"url": endpoint.URL, "allow_networks": []any{"127.0.0.0/8"}},
	}}
	s, err := app.Start(context.Background(), cfg, app.Options{Version: "bench", Log: zap.NewNop(), BundledNames: plugins.Names(),
		Bundled: func(name string) []string { return []string{os.Args[0], "plugin", "exec", name} }})
	must(err)
	announceAndWait(serverInfo{Address: strings.TrimPrefix(s.URL, "http://"), AdminURL: s.AdminURL, Project: s.First.ProjectKey, Personal: s.First.PersonalKey})
}

// BenchmarkActionsPipeline compares the whole server with 200 posting actions and
// with none: 100,000 events under 40 names, half of which occur in actions; one
// event in 50 matches an action. The time runs from the first request until every
// reader of the journal has reached its end.
//
//	go test ./app -run '^$' -bench ActionsPipeline -benchtime 3x
func BenchmarkActionsPipeline(b *testing.B) {
	var without float64
	for _, actions := range []int{0, 200} {
		b.Run(fmt.Sprint("actions=", actions), func(b *testing.B) {
			const requests = 1000
			var took, used time.Duration
			for range b.N {
				b.StopTimer()
				server, a := startProcess(b, "acting")
				for i := range actions {
					createAction(b, a, i)
				}
				client := &fasthttp.Client{MaxConnsPerHost: 64}
				send(b, client, "http://"+a.Address+"/batch/", hundredEvents(a, 0), 10)
				waitDrained(b, a)
				before, begin := processCPU(b, server.Pid), time.Now()
				b.StartTimer()
				for i := range 10 {
					send(b, client, "http://"+a.Address+"/batch/", hundredEvents(a, i), requests/10)
				}
				waitDrained(b, a)
				b.StopTimer()
				took, used = took+time.Since(begin), used+processCPU(b, server.Pid)-before
				_ = server.Kill()
			}
			events := float64(b.N * requests * 100)
			rate := events / took.Seconds()
			b.ReportMetric(rate, "events/s")
			b.ReportMetric(float64(used.Microseconds())/events, "cpu-µs/event")
			if actions == 0 {
				without = rate
			} else if without > 0 {
				b.ReportMetric(100*rate/without, "%of-none")
			}
		})
	}
}

// createAction creates action i of 200: ten for each event name, each with its own
// URL, every third with a property filter.
func createAction(b *testing.B, a serverInfo, i int) {
	b.Helper()
	properties := `[]`
	if i%3 == 0 {
		properties = `[{"key":"price","type":"event","operator":"gt","value":10}]`
	}
	body := fmt.Sprintf(`{"name":"Action %d","post_to_chat":true,"chat_message_format":"[person] did [event.name]","steps":[{"event":"event %d","url":"/products/%d?","url_matching":"contains","properties":%s}]}`,
		i, i%20, i, properties)
	req, err := http.NewRequest(http.MethodPost, "http://"+a.Address+"/api/projects/1/actions/", strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+a.Personal)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if answer, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusCreated {
		b.Fatalf("create action: %d %s", res.StatusCode, answer)
	}
}

// hundredEvents returns a request of 100 events. Two of them match an action.
func hundredEvents(a serverInfo, n int) []byte {
	items := make([]string, 100)
	for i := range items {
		page := 1000 + i // in no action
		if i%50 == 0 {
			page = i % 40
		}
		items[i] = fmt.Sprintf(`{"event":"event %d","distinct_id":"user-%d","properties":{"$lib":"bench","$current_url":"https://shop.example.com/products/%d?x=1","price":12.5,"plan":"pro","items":[1,2,3],"referrer":"https://search.example.com/","browser":"Firefox","os":"Linux","width":1920,"height":1080,"locale":"nl-NL","campaign":"winter","ab":"b","note":"some text that is a little longer than the rest of it all"}}`,
			i%40, n*100+i%1000, page)
	}
	return fmt.Appendf(nil, `{"api_key":%q,"batch":[%s]}`, a.Project, strings.Join(items, ","))
}

var lagging = regexp.MustCompile(`(?m)^guidon_journal_reader_lag_records\{.*\} [1-9]`)

// waitDrained waits until no reader of the journal lags.
func waitDrained(b *testing.B, a serverInfo) {
	b.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		res, err := http.Get(a.AdminURL + "/metrics")
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err == nil && bytes.Contains(text, []byte("guidon_journal_reader_lag_records")) && !lagging.Match(text) {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("readers still lag: %s", lagging.Find(text))
		}
	}
}
