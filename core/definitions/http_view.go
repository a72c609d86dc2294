package definitions

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web"
)

// definitionView are the common fields of event and property definitions in
// answers.
type definitionView struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Tags        []string   `json:"tags"`
	CreatedAt   jsonTime   `json:"created_at"`
	LastSeenAt  jsonTime   `json:"last_seen_at"`
	UpdatedAt   *jsonTime  `json:"updated_at"`
	UpdatedBy   *auth.User `json:"updated_by"`
	Verified    bool       `json:"verified"`
	VerifiedAt  *jsonTime  `json:"verified_at"`
	VerifiedBy  *auth.User `json:"verified_by"`
	Hidden      bool       `json:"hidden"`
}

// eventView is an event definition.
type eventView struct {
	definitionView
	LastUpdatedAt *jsonTime  `json:"last_updated_at"`
	Owner         *auth.User `json:"owner"`
	IsAction      bool       `json:"is_action"`
}

// propertyView is a property definition.
type propertyView struct {
	definitionView
	IsNumerical    bool    `json:"is_numerical"`
	PropertyType   *string `json:"property_type"`
	Type           string  `json:"type"`
	GroupTypeIndex *int    `json:"group_type_index"`
	// IsSeen is null: the events of a property are not recorded.
	IsSeen *bool `json:"is_seen_on_filtered_events"`
}

// jsonTime is a time in answers.
type jsonTime time.Time

// MarshalText prints the time with microseconds.
func (s jsonTime) MarshalText() ([]byte, error) {
	return time.Time(s).UTC().AppendFormat(nil, "2006-01-02T15:04:05.000000Z"), nil
}

func jsonTimeOf(t time.Time) *jsonTime {
	if t.IsZero() {
		return nil
	}
	s := jsonTime(t)
	return &s
}

func (h *HTTP) answer(c *web.Call, d Definition) error {
	views, err := h.views(c.UserContext(), d)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, views[0])
}

// views converts definitions to their form in answers, with the users who
// annotated them.
func (h *HTTP) views(ctx context.Context, list ...Definition) ([]any, error) {
	users, err := h.users(ctx, list)
	if err != nil {
		return nil, err
	}
	user := func(id int64) *auth.User {
		if u, ok := users[id]; ok {
			return &u
		}
		return nil
	}
	out := make([]any, len(list))
	for i := range list {
		d := &list[i]
		v := definitionView{
			ID: d.ID, Name: d.Name, Description: d.Description, Tags: d.Tags, CreatedAt: jsonTime(d.CreatedAt), LastSeenAt: jsonTime(d.LastSeenAt),
			UpdatedAt: jsonTimeOf(d.UpdatedAt), UpdatedBy: user(d.UpdatedBy), Verified: d.Verified, VerifiedAt: jsonTimeOf(d.VerifiedAt),
			VerifiedBy: user(d.VerifiedBy), Hidden: d.Hidden,
		}
		if d.Kind == Event {
			out[i] = eventView{definitionView: v, LastUpdatedAt: v.UpdatedAt}
			continue
		}
		p := propertyView{definitionView: v, IsNumerical: d.PropertyType == Numeric, Type: d.Kind.String()}
		if d.PropertyType != "" {
			p.PropertyType = &d.PropertyType
		}
		if d.Kind == GroupProperty {
			p.GroupTypeIndex = &d.GroupIndex
		}
		out[i] = p
	}
	return out, nil
}

func (h *HTTP) users(ctx context.Context, list []Definition) (map[int64]auth.User, error) {
	var ids []int64
	for i := range list {
		for _, id := range []int64{list[i].UpdatedBy, list[i].VerifiedBy} {
			if id != 0 {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 || h.definitions.deps.Users == nil {
		return nil, nil
	}
	return h.definitions.deps.Users.UsersByID(ctx, ids)
}
