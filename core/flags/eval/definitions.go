package eval

import "encoding/json"

// Definition is the stored form of a flag, as far as Compile and clients that
// evaluate locally need it.
type Definition struct {
	ID                   int64
	ProjectID            int64
	Key                  string
	Name                 string
	Filters              json.RawMessage
	Active               bool
	Deleted              bool
	ExperienceContinuity bool
	Version              int64
	// ByDevice buckets persons by the id of their device, and not by the distinct
	// id. Conditions on groups ignore it. It disables ExperienceContinuity.
	ByDevice bool
	Runtime  Runtime  // the kind of clients that get the flag
	Contexts []string // evaluation contexts; without any the flag is for all
	Sealed   bool     // its payloads are encrypted; Filters has redacted ones
}

// CohortDefinition is the stored form of a cohort: the people that match Filters,
// nested AND and OR groups, or a list of people if Static.
type CohortDefinition struct {
	ID      int64
	Name    string
	Filters json.RawMessage // {"type":"AND"|"OR","values":[…]}; may be wrapped in {"properties":…}
	Static  bool
	Deleted bool
}

// ProjectDefinitions are the inputs of Compile for one project.
type ProjectDefinitions struct {
	Flags      []Definition // deleted ones may be missing
	Cohorts    []CohortDefinition
	GroupTypes map[string]int // group type name to index
	Revision   int64          // of the project, read before the definitions; 0 when unknown
}
