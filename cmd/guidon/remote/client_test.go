package remote_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// client returns a client of a server with the handler.
func client(t *testing.T, handle http.HandlerFunc) *remote.Client {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	c, err := remote.NewClient(remote.Context{URL: s.URL + "/", Project: 7, Key: "phx_k"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRefusals(t *testing.T) {
	for body, want := range map[string]string{
		`{"type":"validation_error","code":"required","detail":"This field is required.","attr":"key"}`: "key: This field is required. (required)",
		`{"code":"not_found","detail":"Not found.","attr":null}`:                                        "Not found. (not_found)",
		`<html>`: "the server answered 400 Bad Request",
		`{}`:     "the server answered 400 Bad Request",
		``:       "the server answered 400 Bad Request",
	} {
		c := client(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(body))
		})
		err := c.Do(t.Context(), http.MethodGet, c.Project(""), nil, nil)
		refused, ok := errors.AsType[*remote.Error](err)
		if !ok || refused.Status != http.StatusBadRequest || err.Error() != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

// TestRedirectsAreNotFollowed checks that the key goes to the server of the context
// only.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other server was asked: %v", r.Header)
	}))
	t.Cleanup(other.Close)
	c := client(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	if err := c.Do(t.Context(), http.MethodGet, "/", nil, nil); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("redirect: %v", err)
	}
}

func TestAllReadsEveryPage(t *testing.T) {
	const total = 450
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer phx_k" || r.URL.Path != "/api/projects/7/feature_flags/" || r.URL.Query().Get("search") != "x" {
			t.Errorf("request: %v %v", r.URL, r.Header)
		}
		offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		var results []string
		for i := offset; i < min(offset+limit, total); i++ {
			results = append(results, strconv.Itoa(i))
		}
		next := "null"
		if offset+limit < total {
			next = `"http://elsewhere/"`
		}
		fmt.Fprintf(w, `{"results":[%s],"next":%s}`, strings.Join(results, ","), next)
	})
	for limit, want := range map[int]int{0: total, 300: 300, 1: 1} {
		all, err := c.All(t.Context(), c.Project("feature_flags/"), map[string][]string{"search": {"x"}}, limit)
		if err != nil || len(all) != want || string(all[want-1]) != strconv.Itoa(want-1) {
			t.Errorf("limit %d: %d results, %v", limit, len(all), err)
		}
	}
}

func TestContextsThatCannotBeCalled(t *testing.T) {
	for _, context := range []remote.Context{
		{URL: "localhost:8000", Key: "phx_k"}, {URL: "unix:/x", Key: "phx_k"}, {URL: "http://", Key: "phx_k"}, {URL: "http://x"}, {URL: "http://x", Key: "phx_k", CA: "/none"},
	} {
		if _, err := remote.NewClient(context); err == nil || strings.Contains(err.Error(), "phx_k") {
			t.Errorf("%s: %v", context.URL, err)
		}
	}
}

// TestThrottledRequestsAreRepeated checks that a request above the rate of the server
// is sent again with its body after Retry-After.
func TestThrottledRequestsAreRepeated(t *testing.T) {
	calls := 0
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]int
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body["n"] != 1 {
			t.Errorf("body %v: %v", body, err)
		}
		if calls++; calls == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	if err := c.Do(t.Context(), http.MethodPost, "/", map[string]int{"n": 1}, nil); err != nil || calls != 2 {
		t.Errorf("%d requests: %v", calls, err)
	}
}
