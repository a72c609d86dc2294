package flags

import "encoding/json"

// state is the part of a flag that people decide: what a version remembers,
// and what the log compares, field by field in this order.
type state struct {
	Name                 string          `json:"name"`
	Key                  string          `json:"key"`
	Filters              json.RawMessage `json:"filters"`
	Deleted              bool            `json:"deleted"`
	Active               bool            `json:"active"`
	ExperienceContinuity bool            `json:"ensure_experience_continuity"`
	RollbackConditions   json.RawMessage `json:"rollback_conditions"`
	PerformedRollback    *bool           `json:"performed_rollback"`
	Tags                 []string        `json:"tags"`
	UsageDashboard       *int64          `json:"usage_dashboard"`
	AnalyticsDashboards  []int64         `json:"analytics_dashboards"`
	EnrichedAnalytics    bool            `json:"has_enriched_analytics"`
}

func (f *Flag) state() state {
	s := state{
		Name: f.Name, Key: f.Key, Filters: f.Filters, Deleted: f.Deleted, Active: f.Active,
		ExperienceContinuity: f.ExperienceContinuity, RollbackConditions: f.RollbackConditions,
		PerformedRollback: f.PerformedRollback, Tags: f.Tags, AnalyticsDashboards: f.AnalyticsDashboards,
		EnrichedAnalytics: f.EnrichedAnalytics,
	}
	if len(s.RollbackConditions) == 0 {
		s.RollbackConditions = json.RawMessage("null")
	}
	if f.UsageDashboard != 0 {
		s.UsageDashboard = &f.UsageDashboard
	}
	return s
}
