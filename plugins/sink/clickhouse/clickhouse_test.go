package clickhouse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/plugins/sink/clickhouse"
	"github.com/guidonhq/guidon/sdk"
)

// try opens a sink with more of a config than the URL.
func try(t *testing.T, url, more string) (*clickhouse.Sink, error) {
	t.Helper()
	s := clickhouse.New()
	if err := sdk.DecodeConfig(fmt.Appendf(nil, `{"url": %q%s}`, url, more), s.Config()); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		return s, err
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	_, err := s.Open(t.Context(), sdk.OpenRequest{Instance: "test"})
	return s, err
}

// noon is when the first event happened.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 123456000, time.UTC)

// events makes n events of project 1, a minute apart.
func events(n int) []sdk.Event {
	out := make([]sdk.Event, n)
	for i := range out {
		at := noon.Add(time.Duration(i) * time.Minute)
		out[i] = sdk.Event{
			UUID: uuid.NewString(), ProjectID: 1, Name: "seen", DistinctID: fmt.Sprintf("d%d", i),
			Timestamp: at, ReceivedAt: at.Add(time.Second), Properties: json.RawMessage(fmt.Sprintf(`{"i":%d}`, i)),
		}
	}
	return out
}

// batch is events[from:to], numbered from 1.
func batch(events []sdk.Event, from, to int) *sdk.Batch {
	b := &sdk.Batch{ID: "b", Attempt: 1, FirstSeq: uint64(from + 1), LastSeq: uint64(to)}
	for i := from; i < to; i++ {
		b.Records = append(b.Records, sdk.Record{UUID: uuid.MustParse(events[i].UUID), JSON: events[i].AppendJSON(nil), ProjectID: events[i].ProjectID})
	}
	return b
}

// everything asks about every event of project 1 within a year of noon.
func everything() *sdk.ActionQuery {
	return &sdk.ActionQuery{ProjectID: 1, From: noon.AddDate(-1, 0, 0), To: noon.AddDate(1, 0, 0), Steps: []sdk.QueryStep{{}}}
}

func TestABatchIsInsertedWithAListOfColumns(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	s, err := try(t, f.url, `, "user": "me", "password": "hush", "database": "db", "table": "ev"`)
	if err != nil {
		t.Fatal(err)
	}
	all := events(3)
	all[1].Properties = json.RawMessage(`{"$current_url":"https://example.com","n":1.50}`)
	all[2].Timestamp = time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 2 {
		if r, err := s.Write(t.Context(), batch(all, 0, 3)); err != nil || r.Outcome != sdk.Committed {
			t.Fatalf("%+v %v", r, err)
		}
	}
	rows := f.rows()
	if len(rows) != 6 {
		t.Fatalf("%d rows", len(rows))
	}
	got := map[string]row{}
	for _, r := range rows {
		got[r.uuid] = r
	}
	if r := got[all[0].UUID]; len(got) != 3 || r.project != 1 || r.event != "seen" || r.distinctID != "d0" || r.timestamp != uint32(noon.Unix()) ||
		r.us != noon.UnixMicro() || r.received != uint32(noon.Unix())+1 || r.properties != `{"i":0}` || fmt.Sprint(r.names, r.values) != "[i] [0]" {
		t.Errorf("%+v", r)
	}
	if r := got[all[1].UUID]; r.url != "https://example.com" || fmt.Sprint(r.names, r.values) != "[$current_url n] [https://example.com 1.50]" {
		t.Errorf("%+v", r)
	}
	if r := got[all[2].UUID]; r.timestamp != 0 || r.us != all[2].Timestamp.UnixMicro() {
		t.Errorf("%+v", r)
	}
	if err := s.Check(t.Context()); err != nil || len(f.rows()) != 6 {
		t.Errorf("%d rows after a check: %v", len(f.rows()), err)
	}
}

func TestATableIsMadeOnceAndGetsColumnsThatCameLater(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for range 2 {
		if _, err := try(t, f.url, `, "cluster": "c1", "engine": "ReplicatedReplacingMergeTree('/p', '{replica}')", "password": "hush"`); err != nil {
			t.Fatal(err)
		}
	}
	made := f.statements("CREATE TABLE")
	if len(made) != 1 || !strings.Contains(made[0], "IF NOT EXISTS `default`.`events` ON CLUSTER `c1` (") || !strings.Contains(made[0], "ENGINE = ReplicatedReplacingMergeTree('/p', '{replica}')") {
		t.Errorf("%q", made)
	}
	f.drop("person_id")
	if _, err := try(t, f.url, `, "password": "hush"`); err != nil {
		t.Fatal(err)
	}
	if added := f.statements("ALTER TABLE"); len(added) != 1 || added[0] != "ALTER TABLE `default`.`events` ADD COLUMN person_id String" {
		t.Errorf("%q", added)
	}
	f.drop("person_id")
	_, err := try(t, f.url, `, "password": "hush", "manage": false`)
	if e := sdk.AsError(err); e == nil || e.Class != sdk.ClassConfig || !strings.Contains(e.Message, "person_id") {
		t.Errorf("%+v", e)
	}
}

func TestWhatTheAnswersOfClickHouseMean(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		header  string
		body    string
		class   sdk.Class
		code    string
		message string
	}{
		"an old server":        {500, "", "Code: 60, e.displayText() = DB::Exception: Table default.events doesn't exist., e.what() = DB::Exception\n", sdk.ClassConfig, "clickhouse_60", "Table default.events doesn't exist."},
		"a new server":         {404, "60", "Code: 60. DB::Exception: Table default.events does not exist. (UNKNOWN_TABLE) (version 26.8)\n", sdk.ClassConfig, "clickhouse_60", "Table default.events does not exist. (UNKNOWN_TABLE) (version 26.8)"},
		"late, after a 200":    {200, "241", "Code: 241. DB::Exception: Memory limit exceeded", sdk.ClassThrottled, "clickhouse_241", "Memory limit exceeded"},
		"a wrong password":     {403, "516", "Code: 516. DB::Exception: me: Authentication failed", sdk.ClassConfig, "clickhouse_516", "me: Authentication failed"},
		"too many parts":       {500, "", "Code: 252, e.displayText() = DB::Exception: Too many parts (300)", sdk.ClassThrottled, "clickhouse_252", "Too many parts (300)"},
		"a broken constraint":  {500, "469", "Code: 469. DB::Exception: Constraint `c` is violated", sdk.ClassPermanent, "clickhouse_469", "Constraint `c` is violated"},
		"what nobody foresaw":  {500, "", "Code: 999, e.displayText() = DB::Exception: Keeper", sdk.ClassTransient, "clickhouse_999", "Keeper"},
		"a proxy that is ill":  {502, "", "<html>bad gateway", sdk.ClassTransient, "http_502", "the server, or a proxy, answered 502 Bad Gateway"},
		"a proxy that refuses": {403, "", "<html>forbidden", sdk.ClassConfig, "http_403", "the server, or a proxy, answered 403 Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			s, err := try(t, f.url, `, "password": "hush"`)
			if err != nil {
				t.Fatal(err)
			}
			f.answer(func(w http.ResponseWriter) {
				if c.header != "" {
					w.Header().Set("X-ClickHouse-Exception-Code", c.header)
				}
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			})
			_, err = s.Write(t.Context(), batch(events(1), 0, 1))
			if e := sdk.AsError(err); e == nil || e.Class != c.class || e.Code != c.code || e.Message != c.message {
				t.Errorf("%+v", e)
			}
			// A question never stops the writing.
			if _, err := s.CountAction(t.Context(), everything(), 0); sdk.AsError(err) == nil || sdk.AsError(err).Class == sdk.ClassConfig {
				t.Errorf("a question: %v", err)
			}
		})
	}
}

func TestAServerThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	_, err := try(t, srv.URL, `, "password": "hush"`)
	if e := sdk.AsError(err); e == nil || e.Class != sdk.ClassTransient || strings.Contains(e.Message, "hush") || strings.Contains(e.Message, "SELECT") {
		t.Errorf("%+v", e)
	}
}

func TestConfigsThatCannotWork(t *testing.T) {
	t.Parallel()
	notPEM := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(notPEM, []byte("no"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ url, more, pointer string }{
		"no URL":               {"clickhouse", ``, "/url"},
		"another protocol":     {"tcp://localhost:9000", ``, "/url"},
		"a password in a URL":  {"http://me:hush@localhost:8123", ``, "/url"},
		"a query in a URL":     {"http://localhost:8123/?database=x", ``, "/url"},
		"no table":             {"http://localhost", `, "table": ""`, "/table"},
		"a quoted database":    {"http://localhost", ", \"database\": \"a`b\"", "/database"},
		"a quoted cluster":     {"http://localhost", ", \"cluster\": \"a`b\"", "/cluster"},
		"an engine that keeps": {"http://localhost", `, "engine": "MergeTree()"`, "/engine"},
		"no certificates":      {"http://localhost", fmt.Sprintf(`, "ca_file": %q`, notPEM), "/ca_file"},
	} {
		_, err := try(t, c.url, c.more)
		var e *sdk.Error
		if !errors.As(err, &e) || e.Class != sdk.ClassConfig || e.Pointer != c.pointer {
			t.Errorf("%s: %v", name, err)
		}
	}
}
