package actions

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/auth"
)

// ActivityEntry is one line of the activity log: who did what to which action, when,
// and what became different. It is written with the change or not at all, and
// read in the form that the log of flags has.
type ActivityEntry struct {
	ID        string
	ProjectID int64
	ItemID    string
	Activity  string // created, updated or deleted
	UserID    int64  // 0 when the system did it
	UserName  string
	UserEmail string
	Detail    Detail
	CreatedAt time.Time
}

// Detail is what an entry tells about the change. The unused names are part of
// the form that readers of the log know.
type Detail struct {
	ID      *string         `json:"id"`
	Changes []Change        `json:"changes"`
	Merge   *string         `json:"merge"`
	Trigger json.RawMessage `json:"trigger"`
	Name    string          `json:"name"`
	ShortID *string         `json:"short_id"`
	Type    *string         `json:"type"`
}

// Change is one field before and after.
type Change struct {
	Type   string          `json:"type"`
	Action string          `json:"action"` // created, deleted or changed
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

func newEntry(who *auth.Principal, a *Action, activity string, at time.Time) ActivityEntry {
	e := ActivityEntry{
		ID: uuid.Must(uuid.NewV7()).String(), ProjectID: a.ProjectID, ItemID: number(a.ID), Activity: activity, CreatedAt: at,
		Detail: Detail{Name: a.Name, Trigger: json.RawMessage("null")},
	}
	if who != nil {
		e.UserID, e.UserName, e.UserEmail = who.User.ID, who.User.FirstName, who.User.Email
	}
	return e
}

// MarshalJSON prints the entry the way the log is read.
func (e ActivityEntry) MarshalJSON() ([]byte, error) {
	type person struct {
		FirstName string  `json:"first_name"`
		Email     *string `json:"email"`
		IsSystem  bool    `json:"is_system,omitempty"`
	}
	who := person{FirstName: e.UserName, Email: &e.UserEmail}
	if e.UserID == 0 {
		who = person{FirstName: "System", IsSystem: true}
	}
	return json.Marshal(struct {
		ID        string `json:"id"`
		User      person `json:"user"`
		Activity  string `json:"activity"`
		Scope     string `json:"scope"`
		ItemID    string `json:"item_id"`
		Detail    Detail `json:"detail"`
		CreatedAt stamp  `json:"created_at"`
	}{e.ID, who, e.Activity, "Action", e.ItemID, e.Detail, stamp(e.CreatedAt)})
}

// fields are what people decide about an action, in the order of the log.
func (a *Action) fields() []field {
	return []field{
		{"name", encode(a.Name)}, {"description", encode(a.Description)}, {"tags", encode(a.Tags)},
		{"post_to_chat", encode(a.PostToChat)}, {"chat_message_format", encode(a.Format)},
		{"chat_destinations", encode(a.Destinations)}, {"steps", encode(showSteps(a.Steps))},
		{"deleted", encode(a.Deleted)}, {"pinned_at", encode((*stampPointer)(a.PinnedAt))},
	}
}

type field struct {
	name  string
	value json.RawMessage
}

// differ lists the fields that differ between two states of an action.
func differ(before, after *Action) []Change {
	var out []Change
	was, is := before.fields(), after.fields()
	for i := range is {
		if bytes.Equal(was[i].value, is[i].value) {
			continue
		}
		out = append(out, Change{Type: "Action", Action: "changed", Field: is[i].name, Before: was[i].value, After: is[i].value})
	}
	return out
}
