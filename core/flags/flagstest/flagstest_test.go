package flagstest_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/flagstest"
)

func TestTheSameSeedIsTheSameProject(t *testing.T) {
	t.Parallel()
	a, _ := json.Marshal(flagstest.Generate(7, 30, 10))
	b, _ := json.Marshal(flagstest.Generate(7, 30, 10))
	c, _ := json.Marshal(flagstest.Generate(8, 30, 10))
	if string(a) != string(b) || string(a) == string(c) {
		t.Error("the seed alone decides")
	}
}

// TestEveryoneGetsAnAnswer also shows that the made-up projects are worth
// asking: values of every kind come out.
func TestEveryoneGetsAnAnswer(t *testing.T) {
	t.Parallel()
	seen := map[any]int{}
	for seed := range uint64(5) {
		corpus := flagstest.Generate(seed, 60, 40)
		stored := corpus.Stored()
		set := eval.Compile(stored.Flags, stored.Cohorts, stored.GroupTypes, eval.CompileOptions{})
		for i := range corpus.People {
			for _, d := range set.Evaluate(corpus.People[i].Question(), nil, time.Now()) {
				if d.Failed != eval.CauseNone {
					t.Errorf("%s cannot be computed: %s", d.Key, d.Failed.Code())
				}
				seen[d.Value()]++
				seen[d.Reason.Code()]++
			}
		}
	}
	for _, want := range []any{true, false, "control", "blue", "holdout-1", "condition_match", "no_condition_match", "out_of_rollout_bound", "no_group_type", "holdout_condition_value"} {
		if seen[want] == 0 {
			t.Errorf("nobody got %v: %v", want, seen)
		}
	}
}
