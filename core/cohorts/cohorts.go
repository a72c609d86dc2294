// Package cohorts keeps groups of persons and answers whether a person is in a
// cohort.
//
// A dynamic cohort is a tree of property filters and is computed by the
// evaluator of flags (flags/eval); a static cohort lists distinct ids and
// contains the persons behind them. Writes are checked (flags/rules), are one
// transaction with their entry in the activity log, and advance the revision of the
// project's flags, because flags use cohorts. A cohort that flags or other
// cohorts use cannot be deleted.
//
// Members answers whether a person is in a cohort. It compiles the cohorts of a
// project once per revision and keeps them in memory (core/snapshot), so that
// projects never wait for each other and a slow database delays only the first
// answer of a project.
//
// The number of persons in a cohort is counted when it is written, and again when
// it is read and the count is old. The package keeps no history of membership.
package cohorts

import (
	"encoding/json"
	"time"

	"github.com/guidonhq/guidon/core/flags/rules"
)

// Cohort is a group of persons. Filters compute a dynamic one; a static one has a
// list of distinct ids.
type Cohort struct {
	ID        int64
	ProjectID int64
	Fields
	Static       bool
	CreatedBy    int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64
	People       *int64 // counted at CalculatedAt; nil if never counted
	CalculatedAt time.Time
}

// Fields are the fields of a cohort that users change. The activity log compares
// them under their JSON names.
type Fields struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Filters     json.RawMessage `json:"filters"` // {"properties": nested groups}
	Deleted     bool            `json:"deleted"`
}

// Query selects the cohorts of a list. The zero Query selects all that are not
// deleted.
type Query struct {
	Search    string // part of the name, in any case
	Static    *bool
	CreatedBy int64
}

// Input is a request to create or change a cohort. Nil fields were not sent.
type Input struct {
	Name        *string
	Description *string
	Filters     json.RawMessage
	Static      *bool
	Deleted     *bool
	Add         []string // distinct ids to add to the list of a static cohort
	Remove      []string // distinct ids to remove from it

	checked rules.Checked // Filters, checked before the transaction
}
