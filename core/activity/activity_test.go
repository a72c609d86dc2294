package activity_test

import (
	"encoding/json"
	"testing"

	"github.com/guidonhq/guidon/core/activity"
)

type embedded struct {
	Name string `json:"name"`
}

type state struct {
	embedded
	Filters json.RawMessage `json:"filters"`
	Tags    []string        `json:"tags"`
	Pinned  *int            `json:"pinned"`
	Limit   *int            `json:"limit,omitempty"`
}

func TestDiffListsChangedFields(t *testing.T) {
	t.Parallel()
	one := 1
	before := state{embedded: embedded{"a<b"}, Filters: json.RawMessage(`{"x":1,"y":[ ]}`), Tags: []string{"a"}, Limit: &one}
	same := before
	same.Filters = json.RawMessage(`{"y":[],"x":1}`)
	if got := activity.Diff(activity.Flag, before, same); got != nil {
		t.Errorf("equal states differ: %+v", got)
	}
	after := before
	after.Name, after.Tags, after.Pinned = "a>b", nil, &one
	want := []activity.Change{
		{activity.Flag, "changed", "name", json.RawMessage(`"a<b"`), json.RawMessage(`"a>b"`)},
		{activity.Flag, "deleted", "tags", json.RawMessage(`["a"]`), json.RawMessage(`null`)},
		{activity.Flag, "created", "pinned", json.RawMessage(`null`), json.RawMessage(`1`)},
	}
	got := activity.Diff(activity.Flag, before, after)
	if g, w := encode(t, got), encode(t, want); g != w {
		t.Errorf("Diff:\n%s\nwant:\n%s", g, w)
	}
	if got := activity.Diff(activity.Flag, 1, 2); got != nil {
		t.Errorf("Diff of numbers = %+v, want none", got)
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
