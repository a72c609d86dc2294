package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// follow opens a stream of a server and returns its events.
func (s *server) follow(t *testing.T, path, key string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d", path, res.StatusCode)
	}
	events := make(chan string, 100)
	go func() {
		defer close(events)
		for in := bufio.NewScanner(res.Body); in.Scan(); {
			if data, ok := strings.CutPrefix(in.Text(), "data: "); ok {
				events <- data
			}
		}
	}()
	return events
}

// await returns the next event that contains want.
func await(t *testing.T, what string, events <-chan string, want string) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case e, open := <-events:
			if !open {
				t.Fatalf("%s: the stream ended", what)
			}
			if strings.Contains(e, want) {
				return
			}
		case <-timeout:
			t.Fatalf("%s: no event with %s", what, want)
		}
	}
}

// done sends a management request that succeeds and returns the id of the answer.
func (s *server) done(t *testing.T, method, path, body string) int {
	t.Helper()
	status, answer := s.ask(t, method, path, body)
	if status >= 300 {
		t.Fatalf("%s %s: %d %v", method, path, status, answer)
	}
	id, _ := answer["id"].(float64)
	return int(id)
}

// Everything that changes answers reaches the streams of another server on the same
// database.
func TestChangesReachTheStreamsOfAnotherServer(t *testing.T) {
	t.Parallel()
	dbtest.RunURL(t, func(t *testing.T, url string) {
		one := serve(t, func(c *app.Config) { c.Database.URL = url })
		other := serveExisting(t, func(c *app.Config) { c.Database.URL = url })
		other.until(t, "the second server knows the key", func() bool {
			status, _, _ := other.request(t, http.MethodPost, other.URL+"/decide?v=3", `{"api_key":"`+one.ProjectKey+`","distinct_id":"u"}`)
			return status == http.StatusOK
		})
		public := other.follow(t, "/flags/changes?token="+one.ProjectKey, "")
		details := other.follow(t, "/api/projects/1/changes", one.PersonalKey)
		await(t, "the begin", public, "revision")
		await(t, "the begin", details, "revision")
		check := func(what, kind string) {
			t.Helper()
			await(t, what, details, `"kind":"`+kind+`"`)
			await(t, what, public, "refetchEvaluation")
		}
		const base = "/api/projects/1/"
		flag := one.done(t, "POST", base+"feature_flags/", `{"key":"a","filters":{"groups":[{"properties":[]}]}}`)
		check("a flag", "feature_flag")
		cohort := fmt.Sprint(base, "cohorts/", one.done(t, "POST", base+"cohorts/", `{"name":"c","is_static":true}`), "/")
		check("a cohort", "cohort")
		one.done(t, "PATCH", cohort, `{"distinct_ids":["u1","u2"]}`)
		check("people added to a static cohort", "cohort")
		one.done(t, "PATCH", cohort, `{"remove_distinct_ids":["u1"]}`)
		check("people removed from a static cohort", "cohort")
		one.done(t, "PATCH", base, `{"timezone":"Asia/Tokyo"}`)
		check("the time zone", "project")
		one.done(t, "PATCH", fmt.Sprint(base, "feature_flags/", flag, "/"), `{"active":false}`)
		check("a disabled flag", "feature_flag")
		status, _, _ := one.request(t, http.MethodPost, one.URL+"/capture/", `{"api_key":"`+one.ProjectKey+`","event":"$groupidentify","distinct_id":"u","properties":{"$group_type":"company","$group_key":"k","$group_set":{}}}`)
		if status != http.StatusOK {
			t.Fatalf("capture: %d", status)
		}
		check("a group type", "group_types")

		one.done(t, "PATCH", cohort, `{"remove_distinct_ids":["never there"]}`)
		one.done(t, "PATCH", base, `{"name":"renamed"}`)
		one.done(t, "PATCH", cohort, `{"name":"last"}`)
		var last struct{ Name string }
		e := <-details // neither of the two before it
		if err := json.Unmarshal([]byte(e), &last); err != nil || last.Name != "last" {
			t.Errorf("an event of a request that changed no answer: %s", e)
		}
	})
}

// A plugin that ends and comes back is a change for projects that use its operators.
func TestPluginsThatComeAndGoAreChanges(t *testing.T) {
	t.Parallel()
	s := serve(t, withCIDRMatcher)
	s.flag(t, "office", office)
	details := s.follow(t, "/api/projects/1/changes", s.PersonalKey)
	await(t, "the begin", details, "revision")
	eventually(t, "map[office:true] false", func() string { return s.decide(t, "10.1.2.3") })
	pid := s.pid(t, "networks")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "a plugin that was restarted", details, `"kind":"operators"`)
}
