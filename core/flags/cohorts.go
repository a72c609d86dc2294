package flags

import (
	"encoding/json"
	"time"

	"github.com/guidonhq/guidon/core/auth"
)

// Cohort is a group of people as the project keeps it. A dynamic one is
// computed from Filters, a static one has the people somebody listed.
type Cohort struct {
	ID           int64
	ProjectID    int64
	Name         string
	Description  string
	Filters      json.RawMessage // {"properties": nested groups}
	Static       bool
	Deleted      bool
	CreatedBy    int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64
	People       *int64 // how many there were at CalculatedAt; nil when never counted
	CalculatedAt time.Time
}

// cohortView is the JSON form of a cohort.
type cohortView struct {
	ID                int64           `json:"id"`
	Name              string          `json:"name"`
	Description       string          `json:"description"`
	Groups            []struct{}      `json:"groups"`
	Deleted           bool            `json:"deleted"`
	Filters           json.RawMessage `json:"filters"`
	IsCalculating     bool            `json:"is_calculating"`
	CreatedBy         *auth.User      `json:"created_by"`
	CreatedAt         stamp           `json:"created_at"`
	LastCalculation   stamp           `json:"last_calculation"`
	ErrorsCalculating int             `json:"errors_calculating"`
	Count             *int64          `json:"count"`
	IsStatic          bool            `json:"is_static"`
	Version           int64           `json:"version"`
	UpdatedAt         stamp           `json:"updated_at"`
}

func (c *Cohort) show(who *auth.User) cohortView {
	return cohortView{
		ID: c.ID, Name: c.Name, Description: c.Description, Groups: []struct{}{}, Deleted: c.Deleted, Filters: c.Filters,
		CreatedBy: who, CreatedAt: stamp(c.CreatedAt), LastCalculation: stamp(c.CalculatedAt), Count: c.People,
		IsStatic: c.Static, Version: c.Version, UpdatedAt: stamp(c.UpdatedAt),
	}
}

// state is the part of a cohort that people decide.
func (c *Cohort) state() any {
	return struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Filters     json.RawMessage `json:"filters"`
		Deleted     bool            `json:"deleted"`
	}{c.Name, c.Description, c.Filters, c.Deleted}
}
