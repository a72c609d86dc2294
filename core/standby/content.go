package standby

import (
	"sync/atomic"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/flags/eval"
)

// content is everything in a snapshot. Keys are digests in hexadecimal.
type content struct {
	TakenAt      time.Time             `json:"taken_at"`
	Projects     []auth.Project        `json:"projects"`
	ProjectKeys  []projectKey          `json:"project_keys"`
	PersonalKeys []personalKey         `json:"personal_keys"`
	Flags        map[int64]definitions `json:"flags"`
}

type projectKey struct {
	Digest    string `json:"digest"`
	ProjectID int64  `json:"project_id"`
}

// personalKey is what a server needs of a personal key or a secret key without a
// database. It names no person.
type personalKey struct {
	Digest           string    `json:"digest"`
	KeyID            int64     `json:"key_id"`
	UserID           int64     `json:"user_id"`
	OrganizationID   string    `json:"organization_id"`
	Level            int       `json:"level"`
	Scopes           []string  `json:"scopes"`
	ProjectIDs       []int64   `json:"project_ids"`
	CurrentProjectID int64     `json:"current_project_id"`
	ExpiresAt        time.Time `json:"expires_at,omitzero"`  // zero: never
	Secret           bool      `json:"secret_key,omitempty"` // of the project, not of a user
}

// definitions returns the definitions in the form of the evaluator.
func (c *content) definitions() map[int64]eval.ProjectDefinitions {
	out := make(map[int64]eval.ProjectDefinitions, len(c.Flags))
	for _, p := range c.Projects {
		if d, ok := c.Flags[p.ID]; ok {
			out[p.ID] = eval.ProjectDefinitions{Flags: d.Flags, Cohorts: d.Cohorts, GroupTypes: d.GroupTypes}
		}
	}
	return out
}

// index finds the parts of a content by their keys. It is immutable except for
// the time at which the database last confirmed it.
type index struct {
	content     *content
	projects    map[int64]auth.Project
	byKey       map[string]int64
	principals  map[string]*auth.Principal
	confirmedAt atomic.Int64 // unix nanoseconds
}

func newIndex(c *content) *index {
	i := &index{content: c, projects: map[int64]auth.Project{}, byKey: map[string]int64{}, principals: map[string]*auth.Principal{}}
	for _, p := range c.Projects {
		i.projects[p.ID] = p
	}
	for _, k := range c.ProjectKeys {
		i.byKey[k.Digest] = k.ProjectID
	}
	for _, k := range c.PersonalKeys {
		i.principals[k.Digest] = &auth.Principal{
			User: auth.User{ID: k.UserID}, OrganizationID: k.OrganizationID, OrgLevel: k.Level, Scopes: k.Scopes,
			ProjectIDs: k.ProjectIDs, CurrentProjectID: k.CurrentProjectID, KeyID: k.KeyID, KeyExpiresAt: k.ExpiresAt, FromSnapshot: true, SecretKey: k.Secret,
		}
	}
	i.confirmedAt.Store(c.TakenAt.UnixNano())
	return i
}
