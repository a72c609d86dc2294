// Package activity is the activity log: who changed what, when, from where, and how.
// It covers flags, cohorts, actions, dashboards, accounts with their keys, erased
// persons and the administration of plugins. It holds no secrets.
//
// An Entry is written in the transaction of the change it describes, so a
// change without an entry and an entry without a change do not exist. It
// repeats the name and address of the user and the name of the item, so that it
// stays readable when these are gone. Diff derives the changed fields from two
// states of an item, which a feature describes as a struct with JSON names.
//
// The log is append-only; entries expire after Config.Retention. Features decide who
// reads their part of it under their own paths. HTTP serves all of it: the log of a
// project to its members, the log of an organization to its admins.
package activity

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/auth"
)

// Scope is the kind of an item.
type Scope string

// The scopes of the log.
const (
	Flag         Scope = "FeatureFlag"
	Cohort       Scope = "Cohort"
	Action       Scope = "Action"
	Dashboard    Scope = "Dashboard"
	Person       Scope = "Person"
	PersonalKey  Scope = "PersonalAPIKey"
	ProjectKey   Scope = "ProjectAPIKey"
	Project      Scope = "Project"
	Organization Scope = "Organization"
	Member       Scope = "OrganizationMembership"
	Role         Scope = "Role"
	RoleMember   Scope = "RoleMembership"
	Invite       Scope = "OrganizationInvite"
	User         Scope = "User"
	Plugin       Scope = "Plugin"
	SecretKey    Scope = "ProjectSecretAPIKey"
	Session      Scope = "Session"
	FlagAccess   Scope = "FeatureFlagRoleAccess"
)

// What was done to an item.
const (
	Created = "created"
	Updated = "updated"
	Deleted = "deleted"
)

// Entry is one line of the log.
type Entry struct {
	ID        string // a UUIDv7
	ProjectID int64  // 0 for what belongs to no project
	// OrganizationID is that of the item, "" for what belongs to the server.
	OrganizationID string
	Scope          Scope
	ItemID         string
	Activity       string // Created, Updated, Deleted, or the verb of an operation
	UserID         int64  // 0 if the system or the command line made the change
	UserName       string
	UserEmail      string
	KeyID          int64  // of the personal key; 0 without a request
	Client         string // address of the client; "" without a request
	UserAgent      string // of the client, shortened
	RequestID      string // as in the log of requests
	Sequence       int64  // in the chain of entries; 0 until the entry is sealed
	Hash           string // of the sealed entry
	Detail         Detail
	CreatedAt      time.Time
}

// Detail describes the change. The fields that are always null are part of the
// answer format that clients of the log know.
type Detail struct {
	ID      *string  `json:"id"`
	Changes []Change `json:"changes"`
	Merge   *string  `json:"merge"`
	Trigger *Trigger `json:"trigger"`
	Name    string   `json:"name"` // of the item
	ShortID *string  `json:"short_id"`
	Type    *string  `json:"type"`
}

// Change is one field before and after.
type Change struct {
	Type   Scope           `json:"type"`
	Action string          `json:"action"` // created (null before), deleted (null after) or changed
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// Trigger is the cause of a change that was not a plain edit.
type Trigger struct {
	JobType string         `json:"job_type"`
	JobID   string         `json:"job_id"`
	Payload map[string]any `json:"payload"`
}

// ItemID returns the id of an item with a number; "" for 0, which selects all.
func ItemID(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// NewEntry returns an entry without detail. A nil principal is the system.
func NewEntry(who *auth.Principal, projectID int64, scope Scope, itemID int64, activity string, at time.Time) Entry {
	e := Entry{
		ID: uuid.Must(uuid.NewV7()).String(), ProjectID: projectID, Scope: scope,
		ItemID: strconv.FormatInt(itemID, 10), Activity: activity, CreatedAt: at,
	}
	if who != nil {
		e.UserID, e.UserName, e.UserEmail = who.User.ID, who.User.FirstName, who.User.Email
		e.OrganizationID, e.KeyID = who.OrganizationID, who.KeyID
	}
	return e
}
