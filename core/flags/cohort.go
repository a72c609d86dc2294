package flags

import "encoding/json"

// CohortDefinition is what is stored about a cohort: people who share
// properties (Filters holds nested AND and OR groups) or, when Static, people
// somebody listed.
type CohortDefinition struct {
	ID      int64
	Name    string
	Filters json.RawMessage // {"type":"AND"|"OR","values":[…]}; may be wrapped in {"properties":…}
	Static  bool
	Deleted bool
}
