package actions

import (
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/actions/history"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
)

// Action is a named definition of events.
type Action struct {
	ID          int64
	ProjectID   int64
	Name        string // unique among the actions of a project that are not deleted
	Description string
	Tags        []string // lower case, sorted, each once
	Steps       []actionmatch.Step
	Deleted     bool

	// PostToChat says that notifications are sent, Format what they say, and
	// Destinations where to; no destination means those the config chooses.
	PostToChat   bool
	Format       string
	Destinations []Destination

	PinnedAt     *time.Time
	CreatedAt    time.Time
	CreatedBy    int64 // a user; 0 when there is none any more
	UpdatedAt    time.Time
	CalculatedAt time.Time // when the history was last counted, at first CreatedAt
	// Version grows with every change of what the action matches or says.
	Version int64
}

// Destination is one place notifications of an action go to.
type Destination struct {
	// Notifier is the name of a notifier instance in the config.
	Notifier string `json:"notifier"`
	// To is the channel, address or URL there; "" is the notifier's own.
	To string `json:"to,omitempty"`
	// Format replaces the action's; "" leaves it.
	Format string `json:"format,omitempty"`
}

// definition is the part of a that its history depends on.
func (a *Action) definition() *history.Definition {
	return &history.Definition{ID: a.ID, ProjectID: a.ProjectID, Version: a.Version, Steps: a.Steps}
}

// Posts reports whether events that fit the action are posted to chat.
func (a *Action) Posts() bool { return a.PostToChat && !a.Deleted }

// Title is the name of the action, or "action <id>" without one.
func (a *Action) Title() string {
	if a.Name != "" {
		return a.Name
	}
	return fmt.Sprintf("action %d", a.ID)
}
