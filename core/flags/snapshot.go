package flags

import (
	"context"
	"encoding/json"
	"time"
)

// Definition is what is stored about a flag and what Compile needs of it.
type Definition struct {
	ID                         int64
	ProjectID                  int64
	Key                        string
	Name                       string
	Filters                    json.RawMessage
	Active                     bool
	Deleted                    bool
	EnsureExperienceContinuity bool
	Version                    int64
}

// Stored is everything a project's snapshot is compiled from.
type Stored struct {
	Flags      []Definition // deleted ones may be left out
	Cohorts    []CohortDefinition
	GroupTypes map[string]int // group type name to index
	Location   *time.Location // the project's time zone; nil is UTC
}

// Source is where snapshots come from: the store of flags and cohorts.
type Source interface {
	// Definitions reads everything of one project.
	Definitions(ctx context.Context, projectID int64) (Stored, error)
	// Stamps returns one number per project that has ever had flags or
	// cohorts. A project's number is another one after each write to its
	// flags, cohorts, group types or time zone, by whichever process. It is
	// asked every few hundred milliseconds and must be one cheap query.
	Stamps(ctx context.Context) (map[int64]int64, error)
}
