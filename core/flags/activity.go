package flags

import (
	"bytes"
	"encoding/json"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/auth"
)

// Entry is one line of the activity log: who did what to which thing, when,
// and what became different. It is written with the change or not at all.
type Entry struct {
	ID        string
	ProjectID int64
	Scope     string // the kind of thing, such as FeatureFlag
	ItemID    string
	Activity  string // created or updated
	UserID    int64  // 0 when the system did it
	UserName  string
	UserEmail string
	Detail    Detail
	CreatedAt time.Time
}

// Detail is what an entry tells about the change. The unused names are part
// of the form that readers of the log know.
type Detail struct {
	ID      *string  `json:"id"`
	Changes []Change `json:"changes"`
	Merge   *string  `json:"merge"`
	Trigger *Trigger `json:"trigger"`
	Name    string   `json:"name"`
	ShortID *string  `json:"short_id"`
	Type    *string  `json:"type"`
}

// Change is one field before and after.
type Change struct {
	Type   string          `json:"type"`
	Action string          `json:"action"` // created, deleted or changed
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// Trigger says what asked for a change when it was not a plain edit.
type Trigger struct {
	JobType string         `json:"job_type"`
	JobID   string         `json:"job_id"`
	Payload map[string]any `json:"payload"`
}

// Scopes of the activity log.
const (
	scopeFlag   = "FeatureFlag"
	scopeCohort = "Cohort"
)

// newEntry is an entry by the holder of a key about one item, without detail.
func newEntry(who *auth.Principal, projectID int64, scope, itemID, activity string, at time.Time) Entry {
	e := Entry{ID: uuid.Must(uuid.NewV7()).String(), ProjectID: projectID, Scope: scope, ItemID: itemID, Activity: activity, CreatedAt: at}
	if who != nil {
		e.UserID, e.UserName, e.UserEmail = who.User.ID, who.User.FirstName, who.User.Email
	}
	return e
}

// MarshalJSON prints the entry the way the log is read.
func (e Entry) MarshalJSON() ([]byte, error) {
	type person struct {
		FirstName string  `json:"first_name"`
		Email     *string `json:"email"`
		IsSystem  bool    `json:"is_system,omitempty"`
	}
	who := person{FirstName: e.UserName, Email: &e.UserEmail}
	if e.UserID == 0 {
		who = person{FirstName: "System", IsSystem: true}
	}
	return encode(struct {
		ID        string `json:"id"`
		User      person `json:"user"`
		Activity  string `json:"activity"`
		Scope     string `json:"scope"`
		ItemID    string `json:"item_id"`
		Detail    Detail `json:"detail"`
		CreatedAt stamp  `json:"created_at"`
	}{e.ID, who, e.Activity, e.Scope, e.ItemID, e.Detail, stamp(e.CreatedAt)}), nil
}

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

// diff lists the fields that differ between two states of a thing, in the
// order of their JSON names.
func diff(kind string, before, after any) []Change {
	was, errWas := parseDocument(encode(before))
	is, errIs := parseDocument(encode(after))
	if errWas != nil || errIs != nil {
		return nil
	}
	var changes []Change
	for _, field := range is.names {
		from, _ := was.get(field)
		to, _ := is.get(field)
		if same(from, to) {
			continue
		}
		action := "changed"
		switch {
		case isNull(from):
			action = "created"
		case isNull(to):
			action = "deleted"
		}
		changes = append(changes, Change{Type: kind, Action: action, Field: field, Before: from, After: to})
	}
	return changes
}

// same reports whether two JSON texts say the same: the order of names and
// white space do not matter, the digits of numbers do.
func same(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := decode(a)
	y, errY := decode(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func decode(raw []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}
