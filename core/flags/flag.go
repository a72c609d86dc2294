package flags

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/web"
)

// Flag is a feature flag of a project.
type Flag struct {
	ID        int64
	ProjectID int64
	Fields
	CreatedBy  int64 // a user id; 0 when unknown
	CreatedAt  time.Time
	UpdatedBy  int64
	UpdatedAt  time.Time
	Version    int64
	LastCalled time.Time // zero if never called
}

// Fields are the fields of a flag that users change. A version stores them, and
// the activity log compares them under their JSON names, in this order. Filters
// is the text of the client after the write rules; see document.Normalized.
type Fields struct {
	Name                 string          `json:"name"`
	Key                  string          `json:"key"`
	Filters              json.RawMessage `json:"filters"`
	Deleted              bool            `json:"deleted"`
	Active               bool            `json:"active"`
	ExperienceContinuity bool            `json:"ensure_experience_continuity"`
	RollbackConditions   json.RawMessage `json:"rollback_conditions"` // null, an object or a list
	PerformedRollback    *bool           `json:"performed_rollback"`
	Tags                 []string        `json:"tags"`
	UsageDashboard       *int64          `json:"usage_dashboard"` // a dashboard id
	AnalyticsDashboards  []int64         `json:"analytics_dashboards"`
	EnrichedAnalytics    bool            `json:"has_enriched_analytics"`
	Bucketing            string          `json:"bucketing_identifier"` // distinct_id or device_id
	Runtime              string          `json:"evaluation_runtime"`   // client, server or all
	Contexts             []string        `json:"evaluation_contexts"`
	RemoteConfiguration  bool            `json:"is_remote_configuration"`
	EncryptedPayloads    bool            `json:"has_encrypted_payloads"` // Filters has them encrypted; see package sealed
}

// Status is the state of a flag.
type Status string

// The states of a flag. A stale flag is active, and can be removed from the code
// that uses it.
const (
	StatusActive   Status = "ACTIVE"
	StatusInactive Status = "INACTIVE"
	StatusStale    Status = "STALE"
	StatusDeleted  Status = "DELETED"
)

// staleAfter is the time without calls after which a flag is stale.
const staleAfter = 30 * 24 * time.Hour

// Status returns the state of the flag at the given time and its reason, a
// sentence for users.
func (f *Flag) Status(now time.Time) (Status, string) {
	switch {
	case f.Deleted:
		return StatusDeleted, "Flag has been deleted"
	case !f.Active:
		return StatusInactive, "Flag is switched off"
	case !f.LastCalled.IsZero() && now.Sub(f.LastCalled) > staleAfter:
		return StatusStale, "Flag has not been called since " + f.LastCalled.UTC().Format(time.DateOnly)
	case f.LastCalled.IsZero() && now.Sub(f.CreatedAt) > staleAfter && document.FullyRolledOut(f.Filters):
		return StatusStale, "Flag is rolled out to everyone, is older than 30 days and was never called"
	}
	return StatusActive, "Flag is in use"
}

// View is the JSON form of a flag, also inside a role access: the fields of the
// contract in its order, then the fields of this server.
type View struct {
	ID                   int64           `json:"id"`
	Name                 string          `json:"name"`
	Key                  string          `json:"key"`
	Filters              json.RawMessage `json:"filters"`
	Deleted              bool            `json:"deleted"`
	Active               bool            `json:"active"`
	CreatedBy            *auth.User      `json:"created_by"`
	CreatedAt            web.Instant     `json:"created_at"`
	IsSimpleFlag         bool            `json:"is_simple_flag"`
	RolloutPercentage    *int64          `json:"rollout_percentage"`
	ExperienceContinuity bool            `json:"ensure_experience_continuity"`
	ExperimentSet        []int64         `json:"experiment_set"`
	Features             struct{}        `json:"features"`
	RollbackConditions   json.RawMessage `json:"rollback_conditions"`
	PerformedRollback    *bool           `json:"performed_rollback"`
	CanEdit              bool            `json:"can_edit"`
	Tags                 []string        `json:"tags"`
	UsageDashboard       *int64          `json:"usage_dashboard"`
	AnalyticsDashboards  []int64         `json:"analytics_dashboards"`
	EnrichedAnalytics    bool            `json:"has_enriched_analytics"`
	Version              int64           `json:"version"`
	UpdatedAt            web.Time        `json:"updated_at"`
	Status               Status          `json:"status"`
	Bucketing            string          `json:"bucketing_identifier"`
	Runtime              string          `json:"evaluation_runtime"`
	Contexts             []string        `json:"evaluation_contexts"`
	ContextTags          []string        `json:"evaluation_tags"` // the older name of Contexts
	RemoteConfiguration  bool            `json:"is_remote_configuration"`
	EncryptedPayloads    bool            `json:"has_encrypted_payloads"`
	LastModifiedBy       *auth.User      `json:"last_modified_by"`
	LastCalledAt         web.Time        `json:"last_called_at"`
	UserAccessLevel      string          `json:"user_access_level"` // editor or viewer
	Surveys              []struct{}      `json:"surveys"`           // there are no surveys
	CreationContext      *string         `json:"creation_context"`  // null: not kept
	Archived             bool            `json:"archived"`          // flags cannot be archived
}

// show builds the JSON form of f. filters are normalized and contain the names of
// cohorts; who is the creator or nil.
func (f *Flag) show(filters json.RawMessage, who *auth.User, canEdit bool, now time.Time) View {
	status, _ := f.Status(now)
	v := View{
		ID: f.ID, Name: f.Name, Key: f.Key, Filters: filters, Deleted: f.Deleted, Active: f.Active,
		CreatedBy: who, CreatedAt: web.Instant(f.CreatedAt), ExperienceContinuity: f.ExperienceContinuity,
		ExperimentSet: []int64{}, RollbackConditions: f.RollbackConditions, PerformedRollback: f.PerformedRollback,
		CanEdit: canEdit, Tags: f.Tags, AnalyticsDashboards: f.AnalyticsDashboards,
		RemoteConfiguration: f.RemoteConfiguration, EncryptedPayloads: f.EncryptedPayloads,
		EnrichedAnalytics: f.EnrichedAnalytics, UsageDashboard: f.UsageDashboard, Version: f.Version, UpdatedAt: web.Time(f.UpdatedAt), Status: status,
		Bucketing: f.Bucketing, Runtime: f.Runtime, Contexts: f.Contexts, ContextTags: f.Contexts,
	}
	v.LastCalledAt, v.UserAccessLevel, v.Surveys = web.Time(f.LastCalled), "viewer", []struct{}{}
	if canEdit {
		v.UserAccessLevel = "editor"
	}
	v.IsSimpleFlag, v.RolloutPercentage = document.SimpleRollout(filters)
	if v.RollbackConditions == nil {
		v.RollbackConditions = json.RawMessage("null")
	}
	if v.Tags == nil {
		v.Tags = []string{}
	}
	if v.AnalyticsDashboards == nil {
		v.AnalyticsDashboards = []int64{}
	}
	return v
}

// keyInEvents returns the key of the flag in the events of clients, without the
// suffix of freed keys.
func (f *Flag) keyInEvents() string { return strings.TrimSuffix(f.Key, retiredSuffix(f)) }
