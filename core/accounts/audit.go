package accounts

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web"
)

// change makes a change together with its entry in the activity log.
func (h *HTTP) change(c *web.Call, do func(ctx context.Context) (*activity.Event, error)) error {
	return h.audit.Change(c.UserContext(), c.Principal, do)
}

// The states of objects in the activity log. They hold no key.
type (
	keyState struct {
		Label      string     `json:"label"`
		Mask       string     `json:"mask_value,omitempty"`
		Scopes     []string   `json:"scopes,omitempty"`
		ProjectIDs []int64    `json:"project_ids,omitempty"`
		ExpiresAt  *time.Time `json:"expires_at,omitempty"`
	}
	projectState struct {
		Name         string `json:"name"`
		Timezone     string `json:"timezone"`
		AnonymizeIPs bool   `json:"anonymize_ips"`
	}
	organizationState struct {
		Name             string `json:"name"`
		FlagsAccessLevel int    `json:"feature_flags_access_level"`
	}
	roleState struct {
		Name             string `json:"name"`
		FlagsAccessLevel int    `json:"feature_flags_access_level"`
	}
	memberState struct {
		Level int `json:"level"`
	}
	userState struct {
		FirstName string `json:"first_name"`
		Email     string `json:"email"`
	}
)

func stateOfKey(k auth.PersonalKey) keyState {
	s := keyState{Label: k.Label, Mask: k.Mask, Scopes: k.Scopes, ProjectIDs: k.ProjectIDs}
	if !k.ExpiresAt.IsZero() {
		s.ExpiresAt = &k.ExpiresAt
	}
	return s
}

func stateOfProject(p auth.Project) projectState {
	return projectState{p.Name, p.Timezone, p.AnonymizeIPs}
}

func stateOfOrganization(o auth.Organization) organizationState {
	return organizationState{o.Name, o.FlagsAccessLevel}
}

func stateOfRole(r auth.Role) roleState { return roleState{r.Name, r.FlagsAccessLevel} }

func keyEvent(k auth.PersonalKey, done string) *activity.Event {
	return &activity.Event{Scope: activity.PersonalKey, ItemID: activity.ItemID(k.ID), Activity: done, Name: k.Label, OrganizationID: k.OrganizationID}
}

func projectKeyEvent(projectID int64, k auth.ProjectKey, done string) *activity.Event {
	return &activity.Event{Scope: activity.ProjectKey, ItemID: activity.ItemID(k.ID), Activity: done, Name: k.Label, ProjectID: projectID}
}

func projectEvent(p auth.Project, done string) *activity.Event {
	return &activity.Event{Scope: activity.Project, ItemID: activity.ItemID(p.ID), Activity: done, Name: p.Name, ProjectID: p.ID}
}

func roleEvent(r auth.Role, done string) *activity.Event {
	return &activity.Event{Scope: activity.Role, ItemID: r.ID, Activity: done, Name: r.Name}
}

func memberEvent(m auth.Member, done string) *activity.Event {
	return &activity.Event{Scope: activity.Member, ItemID: m.User.UUID, Activity: done, Name: m.User.Email}
}

// updateOrganization changes the organization of the key.
func (h *HTTP) updateOrganization(c *web.Call, change auth.OrganizationChange) (o auth.Organization, err error) {
	err = h.change(c, func(ctx context.Context) (*activity.Event, error) {
		before, err := h.auth.Organization(ctx, c.Principal.OrganizationID)
		if err != nil {
			return nil, err
		}
		o, err = h.auth.UpdateOrganization(ctx, before.ID, change)
		return &activity.Event{
			Scope: activity.Organization, ItemID: o.ID, Activity: activity.Updated, Name: o.Name,
			Before: stateOfOrganization(before), After: stateOfOrganization(o),
		}, err
	})
	return o, err
}
