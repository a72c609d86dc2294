package schedule_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/plugins/matcher/schedule"
	"github.com/guidonhq/guidon/sdk"
)

func program(t testing.TB, operator, value string) sdk.Program {
	t.Helper()
	p, err := schedule.Matcher{}.Compile(operator, json.RawMessage(value))
	if err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	return p
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	const office = `{"windows":[{"days":["mon-fri"],"from":"09:00","to":"17:00"}]`
	for _, tt := range []struct {
		name, value, now string
		in               bool
	}{
		{"its first minute is in it", office + `}`, "2026-03-02T09:00:00Z", true},
		{"the minute before is not", office + `}`, "2026-03-02T08:59:59Z", false},
		{"nor is its end", office + `}`, "2026-03-02T17:00:00Z", false},
		{"the second before is", office + `}`, "2026-03-02T16:59:59Z", true},
		{"another day", office + `}`, "2026-03-07T12:00:00Z", false},
		{"a zone ahead of UTC", office + `,"time_zone":"Asia/Tokyo"}`, "2026-03-02T00:30:00Z", true},
		{"where it is already Saturday", office + `,"time_zone":"Pacific/Auckland"}`, "2026-03-06T12:00:00Z", false},
		{"winter time", office + `,"time_zone":"Europe/Berlin"}`, "2026-03-02T08:00:00Z", true},
		{"summer time", office + `,"time_zone":"Europe/Berlin"}`, "2026-06-01T07:00:00Z", true},
		{"before summer time", office + `,"time_zone":"Europe/Berlin"}`, "2026-03-02T07:00:00Z", false},
		{"a window over midnight, before it", `{"windows":[{"days":["fri"],"from":"22:00","to":"02:00"}]}`, "2026-03-06T23:00:00Z", true},
		{"behind it", `{"windows":[{"days":["fri"],"from":"22:00","to":"02:00"}]}`, "2026-03-07T01:59:00Z", true},
		{"and not a day earlier", `{"windows":[{"days":["fri"],"from":"22:00","to":"02:00"}]}`, "2026-03-06T01:00:00Z", false},
		{"over the end of the week", `{"windows":[{"days":["sat"],"from":"22:00","to":"02:00"}]}`, "2026-03-08T01:00:00Z", true},
		{"from a time to the same is a whole day", `{"windows":[{"days":["fri"],"from":"06:00","to":"06:00"}]}`, "2026-03-07T05:59:00Z", true},
		{"a span of days over the weekend", `{"windows":[{"days":["sat-mon"]}]}`, "2026-03-08T12:00:00Z", true},
		{"and no other day", `{"windows":[{"days":["sat-mon"]}]}`, "2026-03-03T00:00:00Z", false},
		{"no days are all days", `{"windows":[{"from":"12:00"}]}`, "2026-03-08T23:59:00Z", true},
		{"until midnight", `{"windows":[{"from":"12:00","to":"24:00"}]}`, "2026-03-08T00:00:00Z", false},
		{"one of several windows", `{"windows":[{"days":["mon"]},{"days":["wed"],"to":"12:00"}]}`, "2026-03-04T11:00:00Z", true},
		{"since", `{"since":"2026-03-01T00:00:00Z"}`, "2026-02-28T23:59:59Z", false},
		{"since, from then on", `{"since":"2026-03-01T00:00:00Z"}`, "2026-03-01T00:00:00Z", true},
		{"until is not part of it", `{"until":"2026-03-01T00:00:00Z"}`, "2026-03-01T00:00:00Z", false},
		{"bounds are in the zone", `{"since":"2026-03-01","until":"2026-03-02 12:00","time_zone":"America/New_York"}`, "2026-03-01T04:59:00Z", false},
		{"and so is their end", `{"since":"2026-03-01","until":"2026-03-02 12:00","time_zone":"America/New_York"}`, "2026-03-02T16:59:00Z", true},
		{"bounds and windows", office + `,"since":"2026-03-04"}`, "2026-03-03T12:00:00Z", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := &sdk.Input{Value: json.RawMessage(`{}`), Now: at(t, tt.now)}
			if got := program(t, "schedule/now", tt.value).Match(in); got != sdk.Matches(tt.in) {
				t.Errorf("now: %s", got)
			}
			in = &sdk.Input{Value: json.RawMessage(`"` + tt.now + `"`)}
			if got := program(t, "schedule/contains", tt.value).Match(in); got != sdk.Matches(tt.in) {
				t.Errorf("contains: %s", got)
			}
			in = &sdk.Input{Value: json.RawMessage(fmt.Sprint(at(t, tt.now).Unix()))}
			if got := program(t, "schedule/contains", tt.value).Match(in); got != sdk.Matches(tt.in) {
				t.Errorf("seconds: %s", got)
			}
		})
	}
}

// The property with a person's zone goes before the schedule's.
func TestZonesOfPeople(t *testing.T) {
	t.Parallel()
	p := program(t, "schedule/now", `{"time_zone":"UTC","time_zone_of":"$timezone","windows":[{"from":"09:00","to":"17:00"}]}`)
	if r, ok := p.(sdk.Reader); !ok || !slices.Equal(r.Reads(), []string{"$timezone"}) {
		t.Errorf("%+v", p)
	}
	for property, want := range map[string]bool{
		`{"$timezone":"Asia/Tokyo"}`: true, `{"$timezone":"UTC"}`: false, `{}`: false, `{"$timezone":"Nowhere/Land"}`: false,
		`{"$timezone":7}`: false, `{"$timezone":""}`: false, `{"$timezone":"../../etc/passwd"}`: false,
	} {
		if got := p.Match(&sdk.Input{Value: json.RawMessage(property), Now: at(t, "2026-03-02T01:00:00Z")}); got != sdk.Matches(want) {
			t.Errorf("%s: %s", property, got)
		}
	}
}

func TestSchedulesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ value, pointer, says string }{
		{`{"time_zone":"Mars/Olympus"}`, "/time_zone", "not a time zone"},
		{`{"time_zone":"Local"}`, "/time_zone", "not a time zone"},
		{`{"since":"tomorrow"}`, "/since", "not a date"},
		{`{"since":"2026-03-01T00:00:30Z"}`, "/since", "whole minutes"},
		{`{"since":"2026-03-02","until":"2026-03-01"}`, "/until", "not after"},
		{`{"windows":[{},{"days":["mon","someday"]}]}`, "/windows/1/days/1", "neither a day"},
		{`{"windows":[{"from":"25:00"}]}`, "/windows/0/from", "time of the day"},
		{`{"windows":[{"to":"9"}]}`, "/windows/0/to", "time of the day"},
		{`{"window":[]}`, "", "unknown field"},
	} {
		_, err := schedule.Matcher{}.Compile("schedule/now", json.RawMessage(tt.value))
		if e := sdk.AsError(err); e == nil || e.Pointer != tt.pointer || !strings.Contains(e.Message, tt.says) {
			t.Errorf("%s: %+v", tt.value, e)
		}
	}
	if _, err := (schedule.Matcher{}).Compile("schedule/contains", json.RawMessage(`{"time_zone_of":"tz"}`)); err == nil {
		t.Error("a time has no person")
	}
}

func TestWhatIsNotATimeIsInNoSchedule(t *testing.T) {
	t.Parallel()
	p := program(t, "schedule/contains", `{"windows":[{}]}`)
	for _, property := range []string{`"soon"`, `null`, `{}`, `1e300`, `true`, `"2026-03-02"`} {
		if got := p.Match(&sdk.Input{Value: json.RawMessage(property)}); got != sdk.NoMatch {
			t.Errorf("%s: %s", property, got)
		}
	}
}

func TestExamplesAreTrue(t *testing.T) {
	t.Parallel()
	for _, o := range (schedule.Matcher{}).Operators() {
		for _, e := range o.Examples {
			if got := program(t, o.ID, string(e.Value)).Match(&sdk.Input{Value: e.Property, Now: e.Now}); got != e.Result {
				t.Errorf("%s %s %s: %s", o.ID, e.Value, e.Property, got)
			}
		}
	}
}

func FuzzSchedule(f *testing.F) {
	f.Add(`{"windows":[{"days":["mon-fri"],"from":"09:00","to":"17:00"}],"time_zone":"Europe/Berlin"}`, `"2026-03-02T08:30:00Z"`)
	f.Fuzz(func(_ *testing.T, value, property string) {
		if p, err := (schedule.Matcher{}).Compile("schedule/contains", json.RawMessage(value)); err == nil && json.Valid([]byte(property)) {
			p.Match(&sdk.Input{Value: json.RawMessage(property)})
		}
	})
}
