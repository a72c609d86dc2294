// Package flagstest makes up projects: flags of every kind over people and
// groups with every kind of property, the same ones for the same seed. Tests
// hold two evaluators against each other with it, ours and that of a client
// library.
package flagstest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/guidonhq/guidon/core/flags/eval"
)

// Corpus is a made-up project and those who ask for its flags. Its JSON form
// is for judges that are not written in Go.
type Corpus struct {
	Flags      []Flag         `json:"flags"`
	Cohorts    []Cohort       `json:"cohorts"`
	GroupTypes map[string]int `json:"group_types"`
	People     []Person       `json:"people"`
}

// Flag is a flag as it is written through the API.
type Flag struct {
	ID      int64          `json:"id"`
	Key     string         `json:"key"`
	Filters map[string]any `json:"filters"`
	Active  bool           `json:"active"`

	BucketingIdentifier string   `json:"bucketing_identifier,omitempty"`
	EvaluationRuntime   string   `json:"evaluation_runtime,omitempty"`
	EvaluationContexts  []string `json:"evaluation_contexts,omitempty"`
}

// Cohort is a dynamic cohort.
type Cohort struct {
	ID      int64          `json:"id"`
	Filters map[string]any `json:"filters"`
}

// Person is a user with all data that a client sends about them.
type Person struct {
	DistinctID      string                    `json:"distinct_id"`
	Properties      map[string]any            `json:"person_properties"`
	Groups          map[string]string         `json:"groups"`
	GroupProperties map[string]map[string]any `json:"group_properties"`
	DeviceID        string                    `json:"device_id,omitempty"`
}

// Generate makes up a project with so many flags and so many people.
func Generate(seed uint64, flagCount, people int) *Corpus {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), corpus: &Corpus{GroupTypes: map[string]int{"company": 0, "project": 1}}}
	for i := range 5 {
		g.corpus.Cohorts = append(g.corpus.Cohorts, Cohort{ID: int64(100 + i), Filters: g.cohort(i, i%3)})
	}
	for i := range flagCount {
		g.corpus.Flags = append(g.corpus.Flags, g.flag(int64(i+1)))
	}
	for i := range people {
		g.corpus.People = append(g.corpus.People, g.person(i))
	}
	return g.corpus
}

// Stored is the corpus as a snapshot is compiled from it.
func (c *Corpus) Stored() eval.ProjectDefinitions {
	s := eval.ProjectDefinitions{GroupTypes: c.GroupTypes}
	for _, f := range c.Flags {
		d := eval.Definition{ID: f.ID, ProjectID: 1, Key: f.Key, Filters: encode(f.Filters), Active: f.Active, Version: 1}
		d.ByDevice, d.Contexts = f.BucketingIdentifier == "device_id", f.EvaluationContexts
		d.Runtime, _ = eval.ParseRuntime(f.EvaluationRuntime)
		s.Flags = append(s.Flags, d)
	}
	for _, k := range c.Cohorts {
		s.Cohorts = append(s.Cohorts, eval.CohortDefinition{ID: k.ID, Filters: encode(k.Filters)})
	}
	return s
}

// Question asks for all flags of the person.
func (p *Person) Question() *eval.Request {
	q := &eval.Request{DistinctID: p.DistinctID, DeviceID: p.DeviceID, Groups: p.Groups, PersonProperties: encode(p.Properties), GroupProperties: map[string]json.RawMessage{}}
	for name, properties := range p.GroupProperties {
		q.GroupProperties[name] = encode(properties)
	}
	return q
}

func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("flagstest: %v", err)) // everything made up here is JSON
	}
	return raw
}
