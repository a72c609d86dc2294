// Package dashboards keeps the usage dashboards of flags.
//
// A dashboard is a page of tiles; a tile counts the stored events of one name
// about the flag of the dashboard, by day and by the value of a property. Every
// new flag gets a generated dashboard. A tile names no flag: it follows the flag
// of its dashboard through renames. Counts are read from the event store when a
// dashboard is shown; a tile that cannot be counted has an error, and the others
// are shown.
package dashboards

import (
	"time"

	"github.com/guidonhq/guidon/core/flags/calls"
)

// Dashboard is a page of tiles about the usage of a flag.
type Dashboard struct {
	ID          int64
	ProjectID   int64
	FlagID      int64 // the flag it was generated for; 0 for none
	Name        string
	Description string
	DateFrom    string // how far back the tiles look, such as -30d
	Tags        []string
	Deleted     bool
	CreatedBy   int64
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Tiles       []Tile
}

// Tile is one chart or table of a dashboard.
type Tile struct {
	ID          int64
	Name        string
	Description string
	Query       TileQuery
}

// TileQuery selects what a tile counts: the events of one name about the flag,
// by day and by the value of a property.
type TileQuery struct {
	Event     string `json:"event"`
	Property  string `json:"property"`  // holds the flag's key
	Breakdown string `json:"breakdown"` // its values are the series; empty for one series
	Math      string `json:"math"`      // total or unique_users
	Display   string `json:"display"`   // ActionsLineGraph or ActionsTable
}

// Names of events and properties that clients send.
const (
	eventViewed      = "$feature_view"
	eventInteracted  = "$feature_interaction"
	propertyFeature  = "feature_flag"
	propertyResponse = "$feature_flag_response"
)

// Values of TileQuery.Math.
const (
	mathTotal  = "total"
	mathUnique = "unique_users"
)

const (
	displayLine  = "ActionsLineGraph"
	displayTable = "ActionsTable"
)

// usageName returns the name of the generated dashboard of a flag.
func usageName(key string) string { return "Generated Dashboard: " + key + " Usage" }

// newUsageDashboard returns the dashboard that every flag gets.
func newUsageDashboard(projectID, flagID int64, key string, by int64, now time.Time) *Dashboard {
	return &Dashboard{
		ProjectID: projectID, FlagID: flagID, Name: usageName(key),
		Description: "How often the feature flag " + key + " is asked for, and what it answers.",
		DateFrom:    "-30d", Tags: []string{"feature flags"}, CreatedBy: by, CreatedAt: now, UpdatedAt: now,
		Tiles: []Tile{{
			Name: "Feature Flag Called Total Volume", Description: "How often the flag was asked for, by its answer.",
			Query: TileQuery{Event: calls.Event, Property: calls.KeyProperty, Breakdown: propertyResponse, Math: mathTotal, Display: displayLine},
		}, {
			Name: "Feature Flag calls made by unique users per variant", Description: "How many people got each answer.",
			Query: TileQuery{Event: calls.Event, Property: calls.KeyProperty, Breakdown: propertyResponse, Math: mathUnique, Display: displayTable},
		}},
	}
}

// enrichedTiles returns the tiles of a flag whose feature reports views and
// interactions.
func enrichedTiles() []Tile {
	tile := func(name, event, math string) Tile {
		return Tile{Name: name, Query: TileQuery{Event: event, Property: propertyFeature, Math: math, Display: displayLine}}
	}
	return []Tile{
		tile("Feature Viewed - Total Views", eventViewed, mathTotal),
		tile("Feature Viewed - Unique users", eventViewed, mathUnique),
		tile("Feature Interaction - Total Usage", eventInteracted, mathTotal),
		tile("Feature Interaction - Unique users", eventInteracted, mathUnique),
	}
}

func (d *Dashboard) enriched() bool {
	for _, t := range d.Tiles {
		if t.Query.Event == eventViewed {
			return true
		}
	}
	return false
}
