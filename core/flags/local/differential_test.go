package local_test

import (
	"encoding/json"
	"testing"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/flagstest"
	"github.com/guidonhq/guidon/core/flags/local"
)

// TestDocumentDecidesAsTheServer compares the answers of the server with what an
// independent evaluator decides from the exported document, for generated flags of
// every shape and people with odd values.
func TestDocumentDecidesAsTheServer(t *testing.T) {
	t.Parallel()
	compared, open, failed := 0, 0, 0
	for seed := range uint64(6) {
		corpus := flagstest.GenerateShapes(seed, 120, 40)
		stored := corpus.Stored()
		for i := range stored.Flags {
			if checkable := json.Valid(stored.Flags[i].Filters); !checkable {
				t.Fatalf("flag %s is not JSON", stored.Flags[i].Key)
			}
		}
		set := eval.Compile(stored.Flags, stored.Cohorts, stored.GroupTypes, eval.CompileOptions{})
		r, err := newReference(local.Document(stored, local.Options{Cohorts: true, Client: current}), flagstest.Now)
		if err != nil {
			t.Fatal(err)
		}
		for i := range corpus.People {
			p := &corpus.People[i]
			a := &clientRequest{id: p.DistinctID, device: p.DeviceID, properties: p.Properties, groups: p.Groups, groupProperties: p.GroupProperties}
			for _, d := range set.Evaluate(p.Question(), nil, flagstest.Now) {
				value, decided := r.value(d.Key, a)
				switch {
				case d.Failed != eval.CauseNone:
					failed++
				case !decided:
					open++
				case value != d.Value():
					t.Errorf("seed %d: %s for %s: server %v, document %v\n%s", seed, d.Key, p.DistinctID, d.Value(), value, filtersOf(stored, d.ID))
				default:
					compared++
				}
			}
		}
	}
	t.Logf("%d values are equal, %d are left to the server, %d failed", compared, open, failed)
	if compared < 15_000 {
		t.Errorf("only %d values compared", compared)
	}
}

func filtersOf(stored eval.ProjectDefinitions, id int64) string {
	for _, f := range stored.Flags {
		if f.ID == id {
			return string(f.Filters)
		}
	}
	return ""
}
