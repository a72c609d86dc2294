package clickhouse_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// answers sends lines of JSON, whatever the question.
func answers(lines ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { fmt.Fprintln(w, strings.Join(lines, "\n")) }
}

func TestCountsAreReadWithNumbersInQuotesAndWithout(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	s, err := try(t, f.url, `, "password": "hush"`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), batch(events(9), 0, 9)); err != nil {
		t.Fatal(err)
	}
	start := noon.Truncate(time.Hour)
	f.answer(answers(fmt.Sprintf(`{"start_us":"%d","n":"3"}`, start.UnixMicro()), fmt.Sprintf(`{"start_us":%d,"n":4}`, start.Add(time.Hour).UnixMicro())))
	r, err := s.CountAction(t.Context(), everything(), time.Hour)
	if err != nil || r.Matched != 7 || r.AsOfSeq != 9 || len(r.Buckets) != 2 || !r.Buckets[1].Start.Equal(start.Add(time.Hour)) || r.Buckets[1].Count != 4 {
		t.Errorf("%+v %v", r, err)
	}
	asked := f.last()
	for _, want := range []string{"uniqExact(uuid)", "project_id = 1 AND ", "FORMAT JSONEachRow", "intDiv(timestamp_us, 3600000000)"} {
		if !strings.Contains(asked, want) {
			t.Errorf("%q is not in %s", want, asked)
		}
	}
	f.answer(answers(`{"start_us":`))
	if _, err := s.CountAction(t.Context(), everything(), 0); sdk.AsError(err) == nil || sdk.AsError(err).Code != "answer_unreadable" {
		t.Error(err)
	}
}

func TestPeopleAreHandedOverInPages(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	s, err := try(t, f.url, `, "password": "hush"`)
	if err != nil {
		t.Fatal(err)
	}
	f.answer(answers(`{"distinct_id":"a","n":1,"first_us":1,"last_us":2}`, `{"distinct_id":"b'","n":1,"first_us":1,"last_us":2}`, `{"distinct_id":"c","n":1,"first_us":1,"last_us":2}`))
	var pages []sdk.PeoplePage
	err = s.PeopleOfAction(t.Context(), everything(), 2, []byte(`it's \`), func(p sdk.PeoplePage) error {
		pages = append(pages, p)
		return nil
	})
	if err != nil || len(pages) != 1 || len(pages[0].People) != 2 || string(pages[0].Cursor) != "b'" {
		t.Errorf("%+v %v", pages, err)
	}
	if asked := f.last(); !strings.Contains(asked, `distinct_id > 'it\'s \\'`) || !strings.Contains(asked, "LIMIT 3") {
		t.Error(asked)
	}
}

func TestWhatCannotBeComparedIsNamed(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	s, err := try(t, f.url, `, "password": "hush"`)
	if err != nil {
		t.Fatal(err)
	}
	before := f.last()
	for _, p := range []sdk.Predicate{
		{Field: "moon", Operator: "exact", Value: json.RawMessage(`"full"`)},
		{Field: "properties.", Operator: "exact", Value: json.RawMessage(`"x"`)},
		{Field: "properties.n", Operator: "gt", Value: json.RawMessage(`5`)},
		{Field: "properties.n", Operator: "not_exact", Value: json.RawMessage(`5`)},
		{Field: "properties.n", Operator: "exact", Value: json.RawMessage(`[]`)},
		{Field: "properties.n", Operator: "exact", Value: json.RawMessage(`null`)},
		{Field: "properties.n", Operator: "exact", Value: json.RawMessage(`[{"a":1}]`)},
		{Field: "properties.n", Operator: "icontains", Value: json.RawMessage(`["a"]`)},
		{Field: "properties.n", Operator: "icontains", Value: nil},
	} {
		q := everything()
		q.Steps = []sdk.QueryStep{{Event: "seen", AllOf: []sdk.Predicate{p}}}
		r, err := s.CountAction(t.Context(), q, 0)
		if err != nil || len(r.Unsupported) != 1 || r.Unsupported[0].Field != p.Field || r.Matched != 0 {
			t.Errorf("%+v: %+v %v", p, r, err)
		}
		err = s.PeopleOfAction(t.Context(), q, 0, nil, func(page sdk.PeoplePage) error {
			if len(page.Unsupported) != 1 {
				t.Errorf("%+v: %+v", p, page)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if f.last() != before {
		t.Errorf("asked all the same: %s", f.last())
	}
	c, err := s.DescribeQuery(t.Context())
	if err != nil || !c.People || len(c.Operators) == 0 || len(c.Fields) == 0 {
		t.Errorf("%+v %v", c, err)
	}
}
