package graph_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/graph"
)

func dependsOn(id int64, others ...int64) eval.Definition {
	properties := ""
	for i, other := range others {
		if i > 0 {
			properties += ","
		}
		properties += fmt.Sprintf(`{"type":"flag","key":"%d","operator":"flag_evaluates_to","value":true}`, other)
	}
	return eval.Definition{
		ID: id, Key: fmt.Sprintf("flag-%d", id), Active: true,
		Filters: json.RawMessage(`{"groups":[{"properties":[` + properties + `]}],"multivariate":{"variants":[{"key":"blue","rollout_percentage":100}]}}`),
	}
}

func TestClosureAndDependents(t *testing.T) {
	t.Parallel()
	defs := []eval.Definition{dependsOn(1), dependsOn(2, 1), dependsOn(4, 2, 9), dependsOn(5, 4), dependsOn(6, 6)}
	got := graph.Closure(defs, []int64{4, 6, 7})
	if len(got) != 4 || got[1].Key != "flag-1" || len(got[4].DependsOn) != 2 || got[2].Variants[0] != "blue" || !got[6].Active {
		t.Errorf("got %+v; want flags 1, 2, 4 and 6", got)
	}
	if list := graph.Dependents(defs, 2); len(list) != 1 || list[0].ID != 4 {
		t.Errorf("dependents of 2: got %v", list)
	}
	if list := graph.Dependents(defs, 5); len(list) != 0 {
		t.Errorf("dependents of 5: got %v", list)
	}
}
