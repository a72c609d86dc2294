package fields_test

import (
	"slices"
	"testing"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/body"
	"github.com/guidonhq/guidon/core/web/budget"
	"github.com/guidonhq/guidon/core/web/fields"
)

func parse(t *testing.T, text string) *fields.Fields {
	t.Helper()
	f, err := fields.Parse([]byte(text), fields.TypeJSON, nil, body.Limits{InflatedBytes: 1 << 20, Depth: 10, Values: 1000, Memory: &budget.Account{}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestIgnoredFields checks that fields that no getter reads are named, also those
// of nested objects, and others are not.
func TestIgnoredFields(t *testing.T) {
	t.Parallel()
	f := parse(t, `{"name":"a","nmae":"b","gone":null,"steps":[{"event":"e","evnet":"x"},{"url":"u"}],"sub":{"in":1,"out":2}}`)
	f.String("name")
	f.Has("gone")
	for _, s := range f.Items("steps").Value {
		s.String("event")
		s.String("url")
	}
	f.Sub("sub").Value.Int("in")
	f.String("absent")
	want := []string{"nmae", "steps__0__evnet", "sub__out"}
	if got := f.Ignored(); !slices.Equal(got, want) {
		t.Errorf("ignored %v, want %v", got, want)
	}
}

// TestRequireKnown checks that a change without any known field fails, and that an
// empty one and one with a known field do not.
func TestRequireKnown(t *testing.T) {
	t.Parallel()
	for text, fails := range map[string]bool{`{"nmae":"b"}`: true, `{}`: false, `{"nmae":"b","name":"a"}`: false} {
		f := parse(t, text)
		f.RequireKnown()
		f.String("name")
		if err := f.Err(); fault.Is(err, fault.Invalid) != fails {
			t.Errorf("%s: %v", text, err)
		}
	}
}
