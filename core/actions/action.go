package actions

import (
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/actions/history"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
)

// Action is a named definition of events. It has one field per stored column.
type Action struct {
	ID          int64
	ProjectID   int64
	Name        string // unique among the actions of a project that are not deleted
	Description string
	Tags        []string // lower case, sorted, each once
	Steps       []actionmatch.Step
	Deleted     bool

	// PostToChat enables notifications, Format is their template, and
	// Destinations are their receivers; empty means those of the config.
	PostToChat   bool
	Format       string
	Destinations []Destination

	PinnedAt     *time.Time
	CreatedAt    time.Time
	CreatedBy    int64 // a user id; 0 after the user was deleted
	UpdatedAt    time.Time
	CalculatedAt time.Time // last count of the history, initially CreatedAt
	// Version grows with every change of the definition or of its
	// notifications.
	Version int64
}

// Destination is a receiver of an action's notifications.
type Destination struct {
	// Notifier is the name of a notifier instance in the config.
	Notifier string `json:"notifier"`
	// To is a channel, address or URL; "" is the notifier's default.
	To string `json:"to,omitempty"`
	// Format replaces the template of the action; "" uses it.
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
