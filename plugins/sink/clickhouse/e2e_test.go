//go:build e2e

package clickhouse_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/plugins/sink/clickhouse"
	"github.com/guidonhq/guidon/plugins/sink/clickhouse/clickhousetest"
	"github.com/guidonhq/guidon/sdk"
)

// opening opens a sink on a table of its own.
func opening(t *testing.T, url, table, more string) (*clickhouse.Sink, error) {
	t.Helper()
	return try(t, url, fmt.Sprintf(`, "password": "hush", "table": %q%s`, table, more))
}

func TestARealServer(t *testing.T) {
	url := clickhousetest.Start(t)
	t.Logf("ClickHouse %s", clickhousetest.Query(t, url, "SELECT version()"))
	for name, test := range map[string]func(t *testing.T, url, table string){
		"an event that is sent twice is counted once": sentTwice,
		"what is kept is what was sent":               kept,
		"columns that are missing are added":          evolved,
		"without manage nothing is made":              unmanaged,
		"months by the hundred":                       manyMonths,
		"questions":                                   questions,
		"people in pages":                             pages,
		"a question that is too large":                tooLarge,
		"who may not":                                 forbidden,
	} {
		t.Run(name, func(t *testing.T) {
			table := "t" + strings.ReplaceAll(uuid.NewString(), "-", "")
			t.Cleanup(func() { clickhousetest.Query(t, url, "DROP TABLE IF EXISTS "+table) })
			test(t, url, table)
		})
	}
}

func must(t *testing.T, s *clickhouse.Sink, err error) *clickhouse.Sink {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func commit(t *testing.T, s *clickhouse.Sink, b *sdk.Batch) {
	t.Helper()
	if r, err := s.Write(t.Context(), b); err != nil || r.Outcome != sdk.Committed {
		t.Fatalf("%+v %v", r, err)
	}
}

func sentTwice(t *testing.T, url, table string) {
	s, err := opening(t, url, table, "")
	must(t, s, err)
	all := events(300)
	for range 3 {
		commit(t, s, batch(all, 0, 200))
		commit(t, s, batch(all, 150, 300))
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	c, err := s.CountAction(t.Context(), everything(), 0)
	if err != nil || c.Matched != 300 || c.AsOfSeq != 300 {
		t.Errorf("%+v %v", c, err)
	}
	if n := clickhousetest.Query(t, url, "SELECT count() FROM "+table+" FINAL"); n != "300" {
		t.Errorf("with FINAL there are %s", n)
	}
}

func kept(t *testing.T, url, table string) {
	s, err := opening(t, url, table, "")
	must(t, s, err)
	all := events(1)
	all[0].Name, all[0].DistinctID = "it's a \\ \"name\"\n", "grün\t\x00"
	all[0].Properties = json.RawMessage(`{"$current_url":"https://example.com/?a='b'","n":1.50,"list":[1,"a"],"no":null,"twice":1,"twice":"2"}`)
	all[0].ElementsChain, all[0].PersonID = `a:text="Go"`, uuid.NewString()
	commit(t, s, batch(all, 0, 1))
	var row struct {
		UUID, Event, Timestamp, Properties string
		DistinctID                         string   `json:"distinct_id"`
		Names                              []string `json:"property_names"`
		Values                             []string `json:"property_values"`
		URL                                string   `json:"current_url"`
		Chain                              string   `json:"elements_chain"`
		Person                             string   `json:"person_id"`
		Us                                 any      `json:"timestamp_us"`
	}
	if err := json.Unmarshal([]byte(clickhousetest.Query(t, url, "SELECT * FROM "+table+" FORMAT JSONEachRow")), &row); err != nil {
		t.Fatal(err)
	}
	if row.UUID != all[0].UUID || row.Event != all[0].Name || row.DistinctID != all[0].DistinctID || row.Properties != string(all[0].Properties) ||
		row.Chain != all[0].ElementsChain || row.Person != all[0].PersonID || row.URL != "https://example.com/?a='b'" ||
		row.Timestamp != all[0].Timestamp.Format(time.DateTime) || !strings.Contains(fmt.Sprintf("%.0f %[1]v", row.Us), fmt.Sprint(all[0].Timestamp.UnixMicro())) {
		t.Errorf("%+v", row)
	}
	if got := fmt.Sprint(row.Names, row.Values); got != `[$current_url n list no twice] [https://example.com/?a='b' 1.50 [1,"a"] null 2]` {
		t.Error(got)
	}
}

func evolved(t *testing.T, url, table string) {
	s, err := opening(t, url, table, "")
	must(t, s, err)
	commit(t, s, batch(events(3), 0, 3))
	clickhousetest.Query(t, url, "ALTER TABLE "+table+" DROP COLUMN person_id")
	clickhousetest.Query(t, url, "ALTER TABLE "+table+" DROP COLUMN current_url")
	clickhousetest.Query(t, url, "ALTER TABLE "+table+" ADD COLUMN mine String DEFAULT 'x'")
	s, err = opening(t, url, table, "")
	must(t, s, err)
	commit(t, s, batch(events(2), 0, 2))
	if n := clickhousetest.Query(t, url, "SELECT count() FROM "+table+" WHERE person_id = '' AND current_url = '' AND mine = 'x'"); n != "5" {
		t.Errorf("%s rows", n)
	}
}

func unmanaged(t *testing.T, url, table string) {
	_, err := opening(t, url, table, `, "manage": false`)
	if e := sdk.AsError(err); e == nil || e.Class != sdk.ClassConfig || e.Pointer != "/table" || !strings.Contains(e.Message, "person_id") {
		t.Errorf("%+v", e)
	}
}

func manyMonths(t *testing.T, url, table string) {
	s, err := opening(t, url, table, "")
	must(t, s, err)
	all := events(250)
	for i := range all {
		all[i].Timestamp = time.Date(1960, time.Month(1+i*7), 1, 0, 0, 0, 0, time.UTC)
	}
	commit(t, s, batch(all, 0, 250))
	q := everything()
	q.From, q.To = all[0].Timestamp, all[249].Timestamp.Add(time.Microsecond)
	if c, err := s.CountAction(t.Context(), q, 0); err != nil || c.Matched != 250 {
		t.Errorf("%+v %v", c, err)
	}
	q.From = time.Date(1965, 1, 1, 0, 0, 0, 0, time.UTC)
	want := uint64(0)
	for i := range all {
		if !all[i].Timestamp.Before(q.From) {
			want++
		}
	}
	if c, err := s.CountAction(t.Context(), q, 0); err != nil || c.Matched != want {
		t.Errorf("%+v %v, want %d", c, err, want)
	}
}

func questions(t *testing.T, url, table string) {
	s, err := opening(t, url, table, "")
	must(t, s, err)
	all := events(8)
	for i, properties := range []string{
		`{"plan":"Pro","$current_url":"https://example.com/Pricing"}`, `{"plan":"pro"}`, `{"plan":"free","n":5}`, `{"plan":null}`,
		`{}`, `{"plan":"Größe"}`, `{"plan":"a\nb","n":5.5}`, `{"it's":true,"plan":["x"]}`,
	} {
		all[i].Properties = json.RawMessage(properties)
	}
	commit(t, s, batch(all, 0, 8))
	for _, c := range []struct {
		field, operator, value string
		want                   uint64
	}{
		{"properties.plan", "exact", `"PRO"`, 2},
		{"properties.plan", "", `"pro"`, 2},
		{"properties.plan", "exact", `["pro","free"]`, 3},
		{"properties.plan", "exact", `"GRÖSSE"`, 0},
		{"properties.plan", "exact", `"GRÖßE"`, 1},
		{"properties.plan", "is_not", `"pro"`, 6},
		{"properties.plan", "is_set", `null`, 7},
		{"properties.plan", "is_not_set", `null`, 1},
		{"properties.plan", "icontains", `"R"`, 4},
		{"properties.plan", "not_icontains", `"r"`, 4},
		{"properties.plan", "icontains", `""`, 7},
		{"properties.plan", "starts_with", `"PR"`, 2},
		{"properties.plan", "ends_with", `"EE"`, 1},
		{"properties.plan", "ends_with", `"a much longer text than any of those"`, 0},
		{"properties.plan", "not_ends_with", `"ee"`, 7},
		{"properties.plan", "regex", `"^[Pp]ro$"`, 2},
		{"properties.plan", "regex", `"a.b"`, 0},
		{"properties.plan", "regex", `"a(?s:.)b"`, 1},
		{"properties.plan", "not_regex", `"^p"`, 7},
		{"properties.plan", "regex", `"("`, 0},
		{"properties.n", "exact", `5`, 1},
		{"properties.n", "exact", `"5.5"`, 1},
		{"properties.it's", "exact", `true`, 1},
		{"properties.$current_url", "exact", `"https://example.com/pricing"`, 1},
		{"properties.$current_url", "icontains", `"PRICING"`, 1},
		{"properties.$current_url", "regex", `".*"`, 1},
		{"properties.$current_url", "is_not", `"https://example.com/pricing"`, 7},
		{"properties.$current_url", "exact", `""`, 0},
		{"distinct_id", "exact", `"d3"`, 1},
		{"event", "starts_with", `"SE"`, 8},
		{"elements_chain", "exact", `""`, 8},
	} {
		q := everything()
		q.Steps = []sdk.QueryStep{{Event: "seen", AllOf: []sdk.Predicate{{Field: c.field, Operator: c.operator, Value: json.RawMessage(c.value)}}}}
		if r, err := s.CountAction(t.Context(), q, 0); err != nil || len(r.Unsupported) > 0 || r.Matched != c.want {
			t.Errorf("%s %s %s: %+v %v, want %d", c.field, c.operator, c.value, r, err, c.want)
		}
	}
	q := everything()
	q.Steps = []sdk.QueryStep{{Event: "nothing"}, {AllOf: []sdk.Predicate{{Field: "distinct_id", Operator: "exact", Value: json.RawMessage(`["d1","d2"]`)}}}}
	if r, err := s.CountAction(t.Context(), q, 0); err != nil || r.Matched != 2 {
		t.Errorf("%+v %v", r, err)
	}
	q = everything()
	q.From, q.To = all[1].Timestamp, all[4].Timestamp
	r, err := s.CountAction(t.Context(), q, 2*time.Minute)
	if err != nil || r.Matched != 3 || len(r.Buckets) != 2 || !r.Buckets[0].Start.Equal(all[0].Timestamp.Truncate(2*time.Minute)) || r.Buckets[0].Count != 1 || r.Buckets[1].Count != 2 {
		t.Errorf("%+v %v", r, err)
	}
}

func pages(t *testing.T, url, table string) {
	s, err := opening(t, url, table, "")
	must(t, s, err)
	all := events(2500)
	for i := range all {
		all[i].DistinctID = fmt.Sprintf("it's %d", i%1200)
	}
	commit(t, s, batch(all, 0, 2500))
	seen, got := map[string]uint64{}, 0
	take := func(p sdk.PeoplePage) error {
		for _, who := range p.People {
			seen[who.DistinctID] += who.Count
			if got++; who.Count == 2 && who.LastSeen.Sub(who.FirstSeen) != 1200*time.Minute {
				t.Errorf("%+v", who)
			}
		}
		return nil
	}
	if err := s.PeopleOfAction(t.Context(), everything(), 0, nil, take); err != nil || len(seen) != 1200 || got != 1200 {
		t.Fatalf("%d people in %d: %v", len(seen), got, err)
	}
	if seen["it's 0"] != 3 || seen["it's 1199"] != 2 {
		t.Errorf("%d and %d", seen["it's 0"], seen["it's 1199"])
	}
	var cursor []byte
	clear(seen)
	for rounds := 0; rounds == 0 || len(cursor) > 0; rounds++ {
		err := s.PeopleOfAction(t.Context(), everything(), 500, cursor, func(p sdk.PeoplePage) error {
			cursor = p.Cursor
			return take(p)
		})
		if err != nil || rounds > 3 {
			t.Fatalf("round %d: %v", rounds, err)
		}
	}
	if len(seen) != 1200 {
		t.Errorf("%d people in pages", len(seen))
	}
}

func tooLarge(t *testing.T, url, table string) {
	s, err := opening(t, url, table, "")
	must(t, s, err)
	commit(t, s, batch(events(100), 0, 100))
	q := everything()
	q.MaxRowsScanned = 10
	if r, err := s.CountAction(t.Context(), q, 0); err != nil || !r.Partial {
		t.Errorf("%+v %v", r, err)
	}
	if err := s.PeopleOfAction(t.Context(), q, 0, nil, func(sdk.PeoplePage) error { return nil }); sdk.AsError(err).Code != "too_many_rows" {
		t.Error(err)
	}
}

func forbidden(t *testing.T, url, table string) {
	for pointer, more := range map[string]string{
		"/user":     `, "password": "wrong"`,
		"/database": `, "password": "hush", "database": "nowhere"`,
		"/engine":   `, "password": "hush", "engine": "SomeReplacingMergeTree()"`,
	} {
		_, err := try(t, url, fmt.Sprintf(`, "table": %q%s`, table, more))
		if e := sdk.AsError(err); e == nil || e.Class != sdk.ClassConfig || e.Pointer != pointer {
			t.Errorf("%s: %+v", pointer, e)
		}
	}
	s, err := opening(t, url, table, "")
	must(t, s, err)
	clickhousetest.Query(t, url, "DROP TABLE "+table)
	_, err = s.Write(context.Background(), batch(events(1), 0, 1))
	if e := sdk.AsError(err); e == nil || e.Class != sdk.ClassConfig || e.Pointer != "/table" {
		t.Errorf("%+v", e)
	}
}
