package flags

import (
	"encoding/json"
	"regexp"
	"time"

	"github.com/guidonhq/guidon/core/flags/dashboards"
	"github.com/guidonhq/guidon/core/flags/fields"
	"github.com/guidonhq/guidon/core/flags/rules"
	"github.com/guidonhq/guidon/core/web"
)

// Input is a request to create or change a flag. Nil fields were not sent. The
// JSON form has the sent fields that are compared with other changes.
type Input struct {
	Name                 *string         `json:"name,omitempty"`
	Key                  *string         `json:"key,omitempty"`
	Filters              json.RawMessage `json:"filters,omitempty"` // a JSON object
	Deleted              *bool           `json:"deleted,omitempty"`
	Active               *bool           `json:"active,omitempty"`
	CreatedAt            *time.Time      `json:"-"`
	ExperienceContinuity *bool           `json:"ensure_experience_continuity,omitempty"`
	RollbackConditions   json.RawMessage `json:"rollback_conditions,omitempty"` // null, an object or a list
	PerformedRollback    **bool          `json:"-"`
	Tags                 *[]string       `json:"tags,omitempty"`
	AnalyticsDashboards  *[]int64        `json:"analytics_dashboards,omitempty"`
	EnrichedAnalytics    *bool           `json:"has_enriched_analytics,omitempty"`
	Bucketing            *string         `json:"bucketing_identifier,omitempty"`
	Runtime              *string         `json:"evaluation_runtime,omitempty"`
	Contexts             *[]string       `json:"evaluation_contexts,omitempty"`
	RemoteConfiguration  *bool           `json:"is_remote_configuration,omitempty"`
	EncryptedPayloads    *bool           `json:"has_encrypted_payloads,omitempty"`

	// Version and Original are the version and the flag that the caller has read.
	// They detect lost updates.
	Version  *int64          `json:"-"`
	Original json.RawMessage `json:"-"`
	// UsageDashboard false creates a flag without a usage dashboard.
	UsageDashboard *bool `json:"-"`

	checked rules.Checked // Filters, checked before the transaction
}

// maxKey is the length limit of a key in characters.
const maxKey = 400

var keyPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// ReadInput reads the writable fields of a flag in the order of the contract. The
// error is an Invalid fault of the first unreadable field. Unknown and read-only
// fields are ignored, because clients send back the whole flag. full requires the
// required fields.
func ReadInput(body *web.Fields, full bool) (Input, error) {
	key := []web.Rule{web.Max(maxKey)}
	if full {
		key = append(key, web.Required)
	}
	in := Input{
		Name:               value(body.String("name", web.Blank)),
		Key:                value(body.String("key", key...)),
		Filters:            body.Object("filters").Value,
		Deleted:            value(body.Bool("deleted")),
		Active:             value(body.Bool("active")),
		CreatedAt:          value(body.Time("created_at")),
		RollbackConditions: fields.RollbackConditions(body),
	}
	// Older servers stored null, and clients send it back: null is false.
	in.ExperienceContinuity = orFalse(body.Bool("ensure_experience_continuity", web.Nullable))
	if o := body.Bool("performed_rollback", web.Nullable); o.Set {
		in.PerformedRollback = new(*bool)
		*in.PerformedRollback = value(o)
	}
	in.Tags = dashboards.ReadTags(body)
	in.AnalyticsDashboards = fields.DashboardIDs(body)
	in.EnrichedAnalytics = orFalse(body.Bool("has_enriched_analytics", web.Nullable))
	in.RemoteConfiguration = orFalse(body.Bool("is_remote_configuration", web.Nullable))
	in.EncryptedPayloads = orFalse(body.Bool("has_encrypted_payloads", web.Nullable))
	in.Bucketing, in.Runtime, in.Contexts = fields.Bucketing(body), fields.Runtime(body), fields.Contexts(body)
	in.Version = value(body.Int("version", web.Nullable))
	in.Original = body.Any("original_flag", web.Nullable).Value
	in.UsageDashboard = value(body.Bool("_should_create_usage_dashboard"))
	return in, body.Err()
}

// applyTo sets the sent fields that need no lookup.
func (in *Input) applyTo(f *Flag) {
	set(&f.Name, in.Name)
	set(&f.Deleted, in.Deleted)
	set(&f.CreatedAt, in.CreatedAt)
	set(&f.ExperienceContinuity, in.ExperienceContinuity)
	set(&f.PerformedRollback, in.PerformedRollback)
	set(&f.Active, in.Active)
	set(&f.Tags, in.Tags)
	set(&f.EnrichedAnalytics, in.EnrichedAnalytics)
	set(&f.Bucketing, in.Bucketing)
	set(&f.Runtime, in.Runtime)
	set(&f.Contexts, in.Contexts)
	set(&f.RemoteConfiguration, in.RemoteConfiguration)
	set(&f.EncryptedPayloads, in.EncryptedPayloads)
	if in.RollbackConditions != nil {
		f.RollbackConditions = in.RollbackConditions
	}
	if in.Active != nil && *in.Active {
		f.PerformedRollback = new(bool)
	}
}

// set sets a field if a value was sent.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// value returns the value of a field, nil if it was not sent or is null.
func value[T any](o web.Opt[T]) *T {
	if !o.Set || o.Null {
		return nil
	}
	return &o.Value
}

// orFalse returns the value of a field, false for null, nil if it was not sent.
func orFalse(o web.Opt[bool]) *bool {
	if !o.Set {
		return nil
	}
	return &o.Value
}
