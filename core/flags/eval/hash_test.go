package eval_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/guidonhq/guidon/core/flags/flagstest"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/eval/bucket"
)

type vectors struct {
	Vectors []struct {
		Key, Identifier, Salt string
		Hash                  float64
	}
	Holdout []struct {
		Identifier, Salt string
		Hash             float64
	} `json:"holdout_vectors"`
	Rollout struct {
		Key      string  `json:"flag_key"`
		Rollout  float64 `json:"rollout_percentage"`
		Expected []bool
	} `json:"rollout_consistency"`
	Multivariate struct {
		Key      string  `json:"flag_key"`
		Rollout  float64 `json:"rollout_percentage"`
		Variants json.RawMessage
		Expected []any
	} `json:"multivariate_consistency"`
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	raw, err := os.ReadFile("testdata/hash.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestBucketsEqualThoseOfClients(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	if len(v.Vectors) != 202 || len(v.Holdout) != 5 {
		t.Fatalf("read %d vectors and %d holdout vectors", len(v.Vectors), len(v.Holdout))
	}
	for _, c := range v.Vectors {
		if got := bucket.Of(c.Key, c.Identifier, c.Salt); got != c.Hash {
			t.Errorf("%q %q %q: got %v, want %v", c.Key, c.Identifier, c.Salt, got, c.Hash)
		}
	}
	for _, c := range v.Holdout {
		if got := bucket.OfHoldout(c.Identifier); got != c.Hash {
			t.Errorf("holdout of %q: got %v, want %v", c.Identifier, got, c.Hash)
		}
	}
}

func TestValuesOfConsistencyLists(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	one := func(filters string) *eval.Set { return compile(flagstest.Define(1, v.Rollout.Key, filters)) }
	set := one(fmt.Sprintf(`{"groups":[{"properties":[],"rollout_percentage":%v}]}`, v.Rollout.Rollout))
	for i, want := range v.Rollout.Expected {
		if got := valueFor(set, fmt.Sprintf("distinct_id_%d", i)); got != want {
			t.Errorf("%s for %d: got %v, want %v", v.Rollout.Key, i, got, want)
		}
	}
	m := v.Multivariate
	set = compile(flagstest.Define(1, m.Key, fmt.Sprintf(
		`{"groups":[{"properties":[],"rollout_percentage":%v}],"multivariate":{"variants":%s}}`, m.Rollout, m.Variants)))
	for i, want := range m.Expected {
		if got := valueFor(set, fmt.Sprintf("distinct_id_%d", i)); got != want {
			t.Errorf("%s for %d: got %v, want %v", m.Key, i, got, want)
		}
	}
	if len(v.Rollout.Expected) != 1000 || len(m.Expected) != 1000 {
		t.Fatalf("the lists have %d and %d entries", len(v.Rollout.Expected), len(m.Expected))
	}
}

// compile compiles flags of a project with two group types.
func compile(defs ...eval.Definition) *eval.Set {
	return eval.Compile(defs, nil, map[string]int{"company": 0, "project": 1}, eval.CompileOptions{})
}

func valueFor(s *eval.Set, distinctID string) any {
	return s.Evaluate(&eval.Request{DistinctID: distinctID}, nil, flagstest.Now)[0].Value()
}
