package actions

import (
	"encoding/json"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web"
)

// actionView is an action in answers. The notification fields occur under the
// names of older clients as well.
type actionView struct {
	ID                 int64         `json:"id"`
	Name               *string       `json:"name"`
	Description        string        `json:"description"`
	Tags               []string      `json:"tags"`
	PostToChat         bool          `json:"post_to_chat"`
	ChatMessageFormat  string        `json:"chat_message_format"`
	ChatDestinations   []Destination `json:"chat_destinations"`
	PostToSlack        bool          `json:"post_to_slack"`
	SlackMessageFormat string        `json:"slack_message_format"`
	Steps              []stepView    `json:"steps"`
	CreatedAt          web.Instant   `json:"created_at"`
	CreatedBy          *auth.User    `json:"created_by"`
	Deleted            bool          `json:"deleted"`
	IsCalculating      bool          `json:"is_calculating"`
	LastCalculatedAt   web.Instant   `json:"last_calculated_at"`
	TeamID             int64         `json:"team_id"`
	IsAction           bool          `json:"is_action"`
	BytecodeError      *string       `json:"bytecode_error"`
	PinnedAt           *web.Instant  `json:"pinned_at"`
	Version            int64         `json:"version"`
	UpdatedAt          web.Instant   `json:"updated_at"`
	UserAccessLevel    string        `json:"user_access_level"` // every member may edit actions
	CreationContext    *string       `json:"creation_context"`  // null: not kept
}

// stepView is a step with every key; absent fields are null.
type stepView struct {
	ID           string            `json:"id"`
	Event        *string           `json:"event"`
	TagName      *string           `json:"tag_name"`
	Text         *string           `json:"text"`
	TextMatching *string           `json:"text_matching"`
	Href         *string           `json:"href"`
	HrefMatching *string           `json:"href_matching"`
	Selector     *string           `json:"selector"`
	URL          *string           `json:"url"`
	Name         *string           `json:"name"`
	URLMatching  string            `json:"url_matching"`
	Properties   []json.RawMessage `json:"properties"`
}

func viewSteps(steps []actionmatch.Step) []stepView {
	out := make([]stepView, len(steps))
	for i := range steps {
		out[i] = viewStep(&steps[i])
	}
	return out
}

func viewStep(s *actionmatch.Step) stepView {
	null := make(map[string]bool, len(s.Null))
	for _, name := range s.Null {
		null[name] = true
	}
	text := func(name, value string) *string {
		if null[name] {
			return nil
		}
		return &value
	}
	v := stepView{
		ID: s.ID, Event: text("event", s.Event), TagName: text("tag_name", s.TagName), Text: text("text", s.Text),
		TextMatching: text("text_matching", s.TextMatching), Href: text("href", s.Href), HrefMatching: text("href_matching", s.HrefMatching),
		Selector: text("selector", s.Selector), URL: text("url", s.URL), Name: text("name", s.Name), URLMatching: s.URLMatching,
		Properties: s.Properties,
	}
	if v.URLMatching == "" {
		v.URLMatching = "contains"
	}
	if null["properties"] {
		v.Properties = nil
	}
	return v
}

func (a *Action) view(creator *auth.User, c calculation) actionView {
	v := actionView{
		ID: a.ID, Description: a.Description, Tags: a.Tags, PostToChat: a.PostToChat, ChatMessageFormat: a.Format,
		ChatDestinations: a.Destinations, PostToSlack: a.PostToChat, SlackMessageFormat: a.Format, Steps: viewSteps(a.Steps),
		CreatedAt: web.Instant(a.CreatedAt), CreatedBy: creator, Deleted: a.Deleted, IsCalculating: c.running,
		LastCalculatedAt: web.Instant(a.CalculatedAt), TeamID: a.ProjectID, IsAction: true, PinnedAt: (*web.Instant)(a.PinnedAt),
		UserAccessLevel: "editor", Version: a.Version, UpdatedAt: web.Instant(a.UpdatedAt),
	}
	if a.Name != "" {
		v.Name = &a.Name
	}
	if c.at.After(a.CalculatedAt) {
		v.LastCalculatedAt = web.Instant(c.at)
	}
	if c.problem != "" {
		v.BytecodeError = &c.problem
	}
	return v
}
