package ofrep_test

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/ofrep"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// streams has a stream for each key.
type streams struct{}

func (streams) StreamPath(key string) string { return "/flags/changes?token=" + url.QueryEscape(key) }

func (streams) Await(context.Context, int64, int64, time.Time) error { return nil }

// serveStreams serves sample flags with streams.
func serveStreams(t *testing.T, change func(*web.Config)) string {
	t.Helper()
	cfg := decide.DefaultConfig()
	snapshots, err := decide.NewSnapshots(cfg, sample(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshots.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	d, err := decide.NewDecider(cfg, snapshots, decide.Lookups{People: people{}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	wcfg := webtest.Config()
	change(&wcfg)
	return "http://" + webtest.Start(t, wcfg, webtest.DefaultKeys(), zap.NewNop(), nil, ofrep.NewHTTP(cfg, d, nil, streams{}, nil)).Address()
}

// The stream of an answer is at the address by which the client reached the server,
// behind the prefix of a trusted proxy or at the configured address.
func TestStreamBehindAProxy(t *testing.T) {
	t.Parallel()
	const path = "/flags/changes?token=phc_test"
	for name, c := range map[string]struct {
		site, trusted string
		header        []string
		origin, uri   string
	}{
		"direct":                   {"", "loopback", nil, "", path},
		"a prefix":                 {"", "loopback", []string{"X-Forwarded-Prefix", "/guidon/"}, "", "/guidon" + path},
		"a prefix of a client":     {"", "192.0.2.1", []string{"X-Forwarded-Prefix", "/guidon"}, "", path},
		"another host as a prefix": {"", "loopback", []string{"X-Forwarded-Prefix", "//evil.example/x"}, "", path},
		"a prefix with a quote":    {"", "loopback", []string{"X-Forwarded-Prefix", `/a"},{`}, "", path},
		"a configured address":     {"https://flags.example.com", "loopback", []string{"X-Forwarded-Prefix", "/other"}, "https://flags.example.com", path},
		"a configured prefix":      {"https://flags.example.com/a/b/", "loopback", nil, "https://flags.example.com", "/a/b" + path},
	} {
		base := serveStreams(t, func(w *web.Config) { w.SiteURL, w.TrustedProxies = c.site, []string{c.trusted} })
		a := ask(t, base+pathFlags, `{"context":{"targetingKey":"u"}}`, append(c.header, "X-API-Key", "phc_test")...)
		var got struct {
			EventStreams []struct {
				Endpoint struct{ Origin, RequestURI string }
			}
		}
		if err := json.Unmarshal([]byte(a.text), &got); err != nil || len(got.EventStreams) != 1 {
			t.Errorf("%s: %v: %s", name, err, a.text)
			continue
		}
		if e := got.EventStreams[0].Endpoint; e.Origin != c.origin || e.RequestURI != c.uri {
			t.Errorf("%s: got %+v, want %q and %q", name, e, c.origin, c.uri)
		}
	}
}

// panicking is a store of persons that panics.
type panicking struct{ people }

func (panicking) Properties(context.Context, int64, string) ([]byte, bool, error) {
	panic("no such person")
}

// A panic is answered in the form of the protocol, and the next request works.
func TestPanicHasTheFormOfTheProtocol(t *testing.T) {
	t.Parallel()
	cfg := decide.DefaultConfig()
	snapshots, err := decide.NewSnapshots(cfg, sample(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshots.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	d, err := decide.NewDecider(cfg, snapshots, decide.Lookups{People: panicking{}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	base := webtest.Serve(t, webtest.DefaultKeys(), ofrep.NewHTTP(cfg, d, nil, nil, nil))
	const body = `{"context":{"targetingKey":"u"}}`
	for path, key := range map[string]any{"": nil, "/targeted": "targeted"} {
		a := ask(t, base+pathFlags+path, body)
		if a.status != 500 || a.body["errorCode"] != "GENERAL" || a.body["errorDetails"] == "" || a.body["key"] != key || strings.Contains(a.text, "person") {
			t.Errorf("%s: got %d %s", path, a.status, a.text)
		}
	}
	if a := ask(t, base+pathFlags+"/static", body); a.status != 200 {
		t.Errorf("after a panic: %d %s", a.status, a.text)
	}
}

// Secret keys are for definitions and remote configurations: an evaluation refuses
// them, and the answer does not repeat them.
func TestSecretKeysAreRefused(t *testing.T) {
	t.Parallel()
	base := serve(t, sample(), people{})
	const key = "phs_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
	for _, header := range [][]string{{"Authorization", "Bearer " + key}, {"X-API-Key", key}} {
		for _, path := range []string{pathFlags, pathFlags + "/static"} {
			a := ask(t, base+path, `{"context":{"targetingKey":"u"}}`, header...)
			if a.status != 401 || a.text != "" || !strings.Contains(a.header.Get("WWW-Authenticate"), "error=") || strings.Contains(a.header.Get("WWW-Authenticate"), key) {
				t.Errorf("%v %s: %d %q %v", header[0], path, a.status, a.text, a.header)
			}
		}
	}
}
