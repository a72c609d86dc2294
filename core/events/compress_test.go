package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/db/rowcodec"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/propertyfilter"
	"github.com/guidonhq/guidon/sdk"
)

// varied are random events of many shapes with times of their own.
func varied(seed uint64, from, n int) []*sdk.Event {
	r := rand.New(rand.NewPCG(seed, 5))
	out := make([]*sdk.Event, n)
	for i := range out {
		who := uuid.NewSHA1(uuid.Nil, fmt.Append(nil, r.IntN(40))).String()
		if r.IntN(4) == 0 {
			who = fmt.Sprintf(`the "%d" <né>`, r.IntN(9))
		}
		url, _ := json.Marshal(fmt.Sprintf("https://example.com/%s/%d%s", []string{"shop", "blog", "a\"b"}[r.IntN(3)], r.IntN(50), strings.Repeat("y", r.IntN(2)*1200)))
		quoted, _ := json.Marshal(who)
		properties := []string{
			fmt.Sprintf(`{"distinct_id":%s,"$current_url":%s,"$session_id":"%s","$group_0":"acme %d","n":%d,"$lib":"web","$os":"Linux"}`,
				quoted, url, id(r.IntN(1e6)), r.IntN(5), r.IntN(20)),
			fmt.Sprintf(`{ "$current_url" : %s , "$lib" : "web" , "nested":{"a":[1,%d,"%s"],"b":null}, "n":1.50}`, url, r.IntN(9), id(i)),
			fmt.Sprintf(`{"$group_0":"acme %d","$group_1":"eu","text":"%s","n":%d}`, r.IntN(5), strings.Repeat("né ", r.IntN(40)), r.IntN(20)),
			`{}`, `{"n":null}`, fmt.Sprintf(`{"id":"%s"}`, strings.ToUpper(id(i))),
		}[r.IntN(6)]
		out[i] = ev(from+i, []string{"a", "b", "$pageview"}[r.IntN(3)], who, properties)
	}
	return out
}

// compressing returns a service whose new events are compressed.
func compressing(t testing.TB, d *db.DB) *events.Service {
	t.Helper()
	s := service(t, d)
	store(t, s, varied(1, 0, events.MinCompressed)...)
	if trained, err := s.Train(t.Context(), 1); err != nil || !trained {
		t.Fatalf("trained %v, %v", trained, err)
	}
	return s
}

func compressedRows(t testing.TB, d *db.DB) (n int) {
	t.Helper()
	if err := d.Read(t.Context()).NewRaw("SELECT count(*) FROM events WHERE typeof(properties) = 'blob'").Scan(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// answers are what readers see of the events.
type answers struct {
	Listed, Found, Tail, Scanned []sdk.Event
	Exported                     []events.Exported
	Counts                       []events.Count
	Related                      events.Related
	One                          sdk.Event
}

func ask(t *testing.T, s *events.Service) (a answers) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	a.Listed, _, err = s.List(ctx, 1, events.Filter{}, 5000)
	check(err)
	filter, err := propertyfilter.Compile(`[{"key":"n","operator":"gt","value":9,"type":"event"}]`, match.Options{}, events.EventProperty)
	check(err)
	a.Found, _, err = s.List(ctx, 1, events.Filter{Properties: filter}, 5000)
	check(err)
	stored, err := s.Tail(ctx, 1, 0, 5000)
	check(err)
	for _, e := range stored {
		a.Tail = append(a.Tail, e.Event)
	}
	a.Exported, err = s.Export(ctx, 1, events.ExportQuery{}, 5000)
	check(err)
	q := events.HistoryQuery{ProjectID: 1, Any: []events.HistoryClause{{AnyEvent: true}}}
	check(s.ScanHistory(ctx, &q, func(e *events.HistoryEvent) error {
		clone := e.Event
		clone.Properties = slices.Clone(clone.Properties)
		a.Scanned = append(a.Scanned, clone)
		return nil
	}))
	slices.SortFunc(a.Scanned, func(x, y sdk.Event) int { return strings.Compare(x.UUID, y.UUID) })
	a.Counts, err = s.Counts(ctx, events.CountQuery{
		ProjectID: 1, Event: "a", Property: "$lib", Value: "web", Breakdown: "n", From: start, To: start.AddDate(0, 0, 30), Interval: 24 * time.Hour,
	})
	check(err)
	a.Related, err = s.Related(ctx, 1, events.Member{TypeIndex: 0, Key: "acme 3"}, start)
	check(err)
	for n := events.MinCompressed; len(a.One.Properties) < 50 && n < events.MinCompressed+100; n++ {
		a.One, _ = s.Get(ctx, 1, id(n)) // some were erased
	}
	return a
}

// Compressed and plain rows give the same answers, also after erasure and retention.
func TestCompressedEventsEqualPlainOnes(t *testing.T) {
	t.Parallel()
	plainDB, packedDB := dbtest.SQLite(t), dbtest.SQLite(t)
	cfg := events.DefaultConfig()
	cfg.Compress = false
	plain, packed := events.New(cfg, plainDB, zap.NewNop(), nil), service(t, packedDB)
	erased := map[*events.Service][]events.HistoryEvent{}
	for _, s := range []*events.Service{plain, packed} {
		s.OnErase(func(_ context.Context, e *events.Erased) error {
			erased[s] = append(erased[s], e.Events...)
			return nil
		})
		store(t, s, varied(1, 0, events.MinCompressed)...)
		if trained, err := packed.Train(t.Context(), 1); err != nil || s == packed && !trained {
			t.Fatal(trained, err)
		}
		store(t, s, varied(2, events.MinCompressed, 1000)...)
	}
	if n := compressedRows(t, plainDB); n != 0 {
		t.Fatalf("%d rows are compressed without the setting", n)
	}
	if n := compressedRows(t, packedDB); n < 400 {
		t.Fatalf("%d of 1000 rows are compressed", n)
	}
	compare := func(when string) {
		t.Helper()
		want, got := ask(t, plain), ask(t, packed)
		for i := range reflect.TypeOf(want).NumField() {
			if w, g := reflect.ValueOf(want).Field(i), reflect.ValueOf(got).Field(i); !reflect.DeepEqual(w.Interface(), g.Interface()) {
				t.Errorf("%s: %s differ", when, reflect.TypeOf(want).Field(i).Name)
			}
		}
		if len(want.Related.DistinctIDs) == 0 || len(want.Counts) == 0 || len(want.Found) == 0 {
			t.Error(when, "a query has no answer")
		}
	}
	compare("stored")
	for _, s := range []*events.Service{plain, packed} {
		if _, err := s.Erase(t.Context(), 1, []string{uuid.NewSHA1(uuid.Nil, []byte("7")).String(), `the "3" <né>`}); err != nil {
			t.Fatal(err)
		}
	}
	if len(erased[plain]) == 0 || !reflect.DeepEqual(erased[plain], erased[packed]) {
		t.Error("the erased events differ")
	}
	compare("erased")
	for _, s := range []*events.Service{plain, packed} {
		if n, err := s.DeleteExpired(t.Context(), events.Expiry{ProjectID: 1, Before: start.Add(1000 * time.Minute)}, 5000); err != nil || n == 0 {
			t.Fatal(n, err)
		}
	}
	compare("expired")
}

// An earlier version reads the file after the step back, and a new one compresses again.
func TestCompressedEventsAreTextAfterTheStepBack(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	s := compressing(t, d)
	store(t, s, varied(2, events.MinCompressed, 200)...)
	want := ask(t, s)
	if compressedRows(t, d) == 0 {
		t.Fatal("no row is compressed")
	}
	if err := d.MigrateTo(t.Context(), 77); err != nil {
		t.Fatal(err)
	}
	if n := compressedRows(t, d); n > 0 {
		t.Fatalf("%d rows are still compressed", n)
	}
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = service(t, d)
	if problems := checkFile(t, d); problems != nil {
		t.Errorf("guidon check finds %q", problems)
	}
	if got := ask(t, s); !reflect.DeepEqual(got, want) {
		t.Error("the events differ after the step back")
	}
	if trained, err := s.Train(t.Context(), 1); err != nil || !trained {
		t.Fatal(trained, err)
	}
	store(t, s, varied(3, 5000, 100)...)
	if compressedRows(t, d) == 0 {
		t.Error("no row is compressed after the step forward")
	}
}

// checkFile is what guidon check finds in the file of d.
func checkFile(t *testing.T, d *db.DB) []string {
	t.Helper()
	var file string
	if err := d.Read(t.Context()).NewRaw("SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	problems, err := db.CheckFile(t.Context(), db.Config{URL: "sqlite:" + file}, "")
	if err != nil {
		t.Fatal(err)
	}
	return problems
}

// A damaged row is an error that names it. It does not prevent reading others, erasure
// or retention.
func TestDamagedCompressedEvents(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	s := compressing(t, d)
	who := uuid.NewSHA1(uuid.Nil, []byte("who")).String()
	for i, damage := range []string{
		"substr(properties, 1, 12)", "x'0102'", "x'01'", "x'010affffffff0f00'", "x'01ffffffffffffffffff7f'", "unhex('01e907' || hex(substr(properties, 3)))",
	} {
		n := 10_000 + 2*i
		properties := `{"$lib":"web","$current_url":"https://example.com/","distinct_id":"` + who + `","n":5}`
		store(t, s, ev(n, "a", who, properties), ev(n+1, "a", who, properties))
		set := "UPDATE events SET properties = " + damage + " WHERE uuid = unhex(?)"
		if _, err := d.Write(t.Context()).ExecContext(t.Context(), set, strings.ReplaceAll(id(n), "-", "")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), 1, id(n)); !errors.Is(err, rowcodec.ErrDamaged) || !strings.Contains(err.Error(), id(n)) {
			t.Errorf("%s: %v", damage, err)
		}
		if e, err := s.Get(t.Context(), 1, id(n+1)); err != nil || string(e.Properties) != properties {
			t.Errorf("%s: the next event is %s, %v", damage, e.Properties, err)
		}
	}
	if _, _, err := s.List(t.Context(), 1, events.Filter{Event: "a"}, 5000); !errors.Is(err, rowcodec.ErrDamaged) {
		t.Errorf("list: %v", err)
	}
	if problems := checkFile(t, d); len(problems) != 6 || !strings.Contains(problems[0], strings.ReplaceAll(id(10_000), "-", "")) {
		t.Errorf("guidon check finds %q", problems)
	}
	q := events.HistoryQuery{ProjectID: 1, Any: []events.HistoryClause{{Event: "a"}}}
	if err := s.ScanHistory(t.Context(), &q, func(*events.HistoryEvent) error { return nil }); !errors.Is(err, rowcodec.ErrDamaged) {
		t.Errorf("scan: %v", err)
	}
	if n, err := s.Erase(t.Context(), 1, []string{who}); err != nil || n != 12 {
		t.Errorf("erased %d, %v", n, err)
	}
	if _, _, err := s.List(t.Context(), 1, events.Filter{Event: "a"}, 5000); err != nil {
		t.Errorf("list after the erasure: %v", err)
	}
}

// A damaged dictionary is an error of its rows; new rows are stored as text.
func TestDamagedDictionary(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	store(t, compressing(t, d), varied(2, events.MinCompressed, 100)...)
	if _, err := d.Write(t.Context()).ExecContext(t.Context(), "UPDATE event_dictionaries SET content = zeroblob(100)"); err != nil {
		t.Fatal(err)
	}
	s, before := service(t, d), compressedRows(t, d)
	if _, _, err := s.List(t.Context(), 1, events.Filter{}, 100); !errors.Is(err, rowcodec.ErrDamaged) {
		t.Errorf("list: %v", err)
	}
	if problems := checkFile(t, d); len(problems) == 0 || !strings.Contains(problems[0], "dictionary 1") {
		t.Errorf("guidon check finds %q", problems)
	}
	store(t, s, varied(3, 5000, 100)...)
	if n := compressedRows(t, d); n != before {
		t.Errorf("%d new rows are compressed", n-before)
	}
}

// The server compresses once a project has enough events, without a restart.
func TestDictionaryIsTrainedInTheBackground(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	s := service(t, d)
	s.Start()
	defer s.Stop()
	store(t, s, varied(1, 0, events.MinCompressed)...)
	for n := events.MinCompressed; compressedRows(t, d) == 0; n++ {
		store(t, s, varied(uint64(n), n, 1)...)
		if t.Context().Err() != nil {
			t.Fatal("no dictionary was trained")
		}
		time.Sleep(time.Millisecond)
	}
}

// The samples of a dictionary take little memory, however long the properties are.
func TestSamplesOfLongEventsAreEmpty(t *testing.T) {
	t.Parallel()
	s := service(t, dbtest.SQLite(t))
	store(t, s, varied(1, 0, 100)...)
	long := fmt.Sprintf(`{"text":"%s"}`, strings.Repeat("x", rowcodec.MaxSample))
	store(t, s, ev(100, "a", "ada", long), ev(101, "a", "ada", `{"n":1}`))
	for _, limit := range []int{1, 20, 21, 60, 102, 1000} {
		samples, err := s.Samples(t.Context(), 1, limit)
		if err != nil || len(samples) != min(limit, 102) {
			t.Fatalf("%d samples of %d, %v", len(samples), limit, err)
		}
	}
	samples, err := s.Samples(t.Context(), 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	listed, _, err := s.List(t.Context(), 1, events.Filter{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i, sample := range samples {
		want := string(listed[i].Properties)
		if want == long {
			want = ""
		}
		if string(sample.Plain) != want || string(sample.Columns.DistinctID) != listed[i].DistinctID {
			t.Errorf("sample %d is %s of %s, want %s of %s", i, sample.Plain, sample.Columns.DistinctID, want, listed[i].DistinctID)
		}
	}
}

// A person with many distinct ids is one person: a dictionary outlives their erasure.
func TestDictionaryHasNothingOfAPersonWithManyIDs(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	s := service(t, d)
	list := make([]*sdk.Event, events.MinCompressed)
	for i := range list {
		who := fmt.Sprintf("id %d", i)
		list[i] = ev(i, "a", who, `{"$lib":"web","$lib_version":"1.96.1","$os":"Linux","$browser":"Firefox","$device_type":"Desktop"}`)
		if i%2 == 0 {
			list[i] = ev(i, "a", who, `{"$lib":"web","email":"ada@example.com"}`)
			list[i].PersonID = id(1)
		}
	}
	store(t, s, list...)
	if trained, err := s.Train(t.Context(), 1); err != nil || !trained {
		t.Fatalf("trained %v, %v", trained, err)
	}
	var content []byte
	if err := d.Read(t.Context()).NewRaw("SELECT content FROM event_dictionaries").Scan(t.Context(), &content); err != nil {
		t.Fatal(err)
	}
	if text := string(content); strings.Contains(text, "ada@") || strings.Contains(text, "email") || !strings.Contains(text, "Firefox") {
		t.Errorf("the dictionary is %q", text)
	}
}
