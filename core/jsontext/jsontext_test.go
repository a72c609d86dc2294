package jsontext_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/jsontext"
)

func TestMarshalKeepsHTML(t *testing.T) {
	t.Parallel()
	got, err := jsontext.Marshal(map[string]string{"a": "<b>&"})
	if err != nil || string(got) != `{"a":"<b>&"}` {
		t.Errorf("Marshal = %s, %v", got, err)
	}
	if _, err := jsontext.Marshal(func() {}); err == nil {
		t.Error("a function is marshalled")
	}
}

func TestSorted(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		` {"b": 1.50, "a" : [ {"d":"<","c":null} ]}`: `{"a":[{"c":null,"d":"<"}],"b":1.50}`,
		`[1, 2]`:  `[1,2]`,
		`{broken`: `{broken`,
	} {
		if got := jsontext.Sorted([]byte(raw)); got != want {
			t.Errorf("Sorted(%s) = %s, want %s", raw, got, want)
		}
	}
}

func TestEqualComparesValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[1, 2]}`, `{"b":[1,2],"a":1}`, true},
		{`"\u0061"`, `"a"`, true},
		{`1`, `1.0`, false},
		{`[1,2]`, `[2,1]`, false},
		{`{}`, `null`, false},
		{`x`, `x`, true},
		{`x`, `y`, false},
	} {
		if got := jsontext.Equal([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("Equal(%s, %s) = %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
