package callseries

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/events/flagcalls"
)

func TestDaysOverAChangeOfTheClock(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	sp := newSpan(time.Date(2024, 4, 1, 10, 0, 0, 0, time.UTC), berlin, 3, false) // 02:00 of 31 March is skipped
	got := sp.fold([]flagcalls.Count{{Interval: 0, Calls: 1}, {Interval: 23, Calls: 2}, {Interval: 24, Calls: 10}, {Interval: 46, Calls: 20}, {Interval: 47, Calls: 100}, {Interval: 70, Calls: 200}})
	if sp.width != time.Hour || !slices.Equal(got.Answers[0].Data, []int64{3, 30, 300}) || got.Calls != 333 {
		t.Errorf("width %v, %+v", sp.width, got)
	}
	if sp := newSpan(time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC), berlin, 3, false); sp.width != 24*time.Hour || sp.place(2) != 2 {
		t.Errorf("days of 24 hours are counted by %v", sp.width)
	}
}

func TestFrequentAnswersAreCountedApart(t *testing.T) {
	sp := newSpan(time.Now(), time.UTC, 1, false)
	var rows []flagcalls.Count
	for i := range 12 {
		rows = append(rows, flagcalls.Count{Response: strconv.Itoa(i), Calls: int64(100 - i)})
	}
	got := sp.fold(rows)
	last := got.Answers[len(got.Answers)-1]
	if len(got.Answers) != maxAnswers || got.Answers[0].Response != "0" || last.Response != Other || last.Calls != 91+90+89 {
		t.Errorf("%+v", got.Answers)
	}
	got = sp.fold(append(rows, flagcalls.Count{Response: Other, Calls: 1000})) // a client may call it so
	others := 0
	for _, a := range got.Answers {
		if a.Response == Other {
			others++
		}
	}
	if last := got.Answers[len(got.Answers)-1]; others != 1 || last.Calls != 1000+91+90+89 || got.Answers[0].Calls != 100 {
		t.Errorf("with an answer of that name: %+v", got.Answers)
	}
}

// counter answers with results, and counts how often it is asked for a key.
type counter struct {
	results map[string]flagcalls.Result
	asked   map[string]int
}

func (c *counter) Counts(_ context.Context, q *flagcalls.Query, fn flagcalls.Visit) error {
	for _, key := range q.Keys {
		c.asked[key]++
		if r, ok := c.results[key]; ok {
			fn(key, r)
		}
	}
	return nil
}

func TestFlagsWithTooManyAnswersAreNotReadAgain(t *testing.T) {
	now := time.Now()
	c := &counter{results: map[string]flagcalls.Result{"many": {}}, asked: map[string]int{}}
	s := New(nil, c, func() time.Time { return now })
	flags := []Flag{{Key: "unreached", LastCalled: now}, {Key: "many", LastCalled: now}}
	sp := newSpan(now, time.UTC, 7, false)
	for range 2 {
		got, err := s.read(t.Context(), auth.Project{ID: 1}, flags, sp)
		if err != nil || got["many"].Counted || got["unreached"].Counted {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if c.asked["many"] != 1 || c.asked["unreached"] != 2 {
		t.Errorf("asked %v", c.asked)
	}
	now = now.Add(keepFailed)
	if _, err := s.read(t.Context(), auth.Project{ID: 1}, flags, sp); err != nil || c.asked["many"] != 2 {
		t.Errorf("after %v asked %v: %v", keepFailed, c.asked, err)
	}
}

func TestKeptAnswersAreBounded(t *testing.T) {
	now := time.Now()
	s := New(nil, nil, func() time.Time { return now })
	large := &Series{Answers: []Answer{{Response: "true", Data: make([]int64, maxKept/8/10)}}}
	for i := range 30 {
		s.keep(request{key: strconv.Itoa(i)}, large, time.Minute)
	}
	sum := 0
	for r, a := range s.kept {
		sum += r.size(a.series)
	}
	if len(s.kept) != 9 || sum != s.size || s.size > maxKept || s.kept[request{key: "29"}].series == nil {
		t.Errorf("%d answers of %d bytes, accounted as %d", len(s.kept), sum, s.size)
	}
	s.keep(request{key: "29"}, &Series{}, time.Hour)
	now = now.Add(time.Minute)
	s.dropExpired()
	if r := (request{key: "29"}); len(s.kept) != 1 || s.size != r.size(&Series{}) {
		t.Errorf("%d answers of %d bytes after their time", len(s.kept), s.size)
	}
}
