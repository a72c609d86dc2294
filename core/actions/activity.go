package actions

import (
	"encoding/json"
	"time"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web"
)

func newEntry(principal *auth.Principal, a *Action, done string, at time.Time) activity.Entry {
	e := activity.NewEntry(principal, a.ProjectID, activity.Action, a.ID, done, at)
	e.Detail.Name = a.Name
	return e
}

// state is what users decide about an action, in the order of the activity log.
type state struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	Tags         []string        `json:"tags"`
	PostToChat   bool            `json:"post_to_chat"`
	Format       string          `json:"chat_message_format"`
	Destinations []Destination   `json:"chat_destinations"`
	Steps        json.RawMessage `json:"steps"`
	Deleted      bool            `json:"deleted"`
	PinnedAt     *web.Instant    `json:"pinned_at"`
}

// state is the fields of an action that users set, in the order of the
// activity log.
func (a *Action) state() state {
	return state{
		Name: a.Name, Description: a.Description, Tags: a.Tags, PostToChat: a.PostToChat, Format: a.Format,
		Destinations: a.Destinations, Steps: mustJSON(viewSteps(a.Steps)), Deleted: a.Deleted, PinnedAt: (*web.Instant)(a.PinnedAt),
	}
}
