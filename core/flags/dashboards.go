package flags

import (
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/auth"
)

// Dashboard is a page of tiles about the use of a flag.
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

// Tile is one picture on a dashboard. What it counts is a TileQuery without
// the flag: a tile follows its flag through renames.
type Tile struct {
	ID          int64
	Name        string
	Description string
	Query       TileQuery
}

// TileQuery is what a tile counts: the events of one name about the flag,
// by day and by the value of a property.
type TileQuery struct {
	Event     string `json:"event"`
	Property  string `json:"property"`  // holds the flag's key
	Breakdown string `json:"breakdown"` // its values are the series; empty for one series
	Math      string `json:"math"`      // total or unique_users
	Display   string `json:"display"`   // ActionsLineGraph or ActionsTable
}

// What the events of clients call things.
const (
	eventCalled      = "$feature_flag_called"
	eventViewed      = "$feature_view"
	eventInteracted  = "$feature_interaction"
	propertyFlag     = "$feature_flag"
	propertyFeature  = "feature_flag"
	propertyResponse = "$feature_flag_response"
)

// Ways of counting.
const (
	mathTotal  = "total"
	mathUnique = "unique_users"
)

const (
	displayLine  = "ActionsLineGraph"
	displayTable = "ActionsTable"
)

// usageName is what the generated dashboard of a flag is called.
func usageName(key string) string { return "Generated Dashboard: " + key + " Usage" }

// usageDashboard is the dashboard every flag begins with.
func usageDashboard(f *Flag, by int64, now time.Time) *Dashboard {
	return &Dashboard{
		ProjectID: f.ProjectID, FlagID: f.ID, Name: usageName(f.Key),
		Description: "How often the feature flag " + f.Key + " is asked for, and what it answers.",
		DateFrom:    "-30d", Tags: []string{"feature flags"}, CreatedBy: by, CreatedAt: now, UpdatedAt: now,
		Tiles: []Tile{{
			Name: "Feature Flag Called Total Volume", Description: "How often the flag was asked for, by its answer.",
			Query: TileQuery{Event: eventCalled, Property: propertyFlag, Breakdown: propertyResponse, Math: mathTotal, Display: displayLine},
		}, {
			Name: "Feature Flag calls made by unique users per variant", Description: "How many people got each answer.",
			Query: TileQuery{Event: eventCalled, Property: propertyFlag, Breakdown: propertyResponse, Math: mathUnique, Display: displayTable},
		}},
	}
}

// enrichedTiles are what a flag gets whose feature reports views and uses.
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

// dashboardView is the JSON form of a dashboard; tiles are left out in lists.
type dashboardView struct {
	ID          int64             `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	CreatedAt   stamp             `json:"created_at"`
	CreatedBy   *auth.User        `json:"created_by"`
	UpdatedAt   stamp             `json:"updated_at"`
	Deleted     bool              `json:"deleted"`
	Filters     map[string]string `json:"filters"`
	Tags        []string          `json:"tags"`
	FeatureFlag *int64            `json:"feature_flag"`
	Tiles       []tileView        `json:"tiles,omitempty"`
}

// tileView is the JSON form of a tile with what it counted.
type tileView struct {
	ID          int64        `json:"id"`
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Query       queryView    `json:"query"`
	Days        []string     `json:"days"`
	Result      []seriesView `json:"result"`
	Error       string       `json:"error,omitempty"`
}

type queryView struct {
	TileQuery
	Value    string `json:"value"`
	DateFrom string `json:"date_from"`
	Interval string `json:"interval"`
}

// seriesView is one line of a tile: a number a day, in the order of days.
type seriesView struct {
	Label     string  `json:"label"`
	Breakdown string  `json:"breakdown_value"`
	Data      []int64 `json:"data"`
	Count     int64   `json:"count"`
}

func (d *Dashboard) show(who *auth.User) dashboardView {
	v := dashboardView{
		ID: d.ID, Name: d.Name, Description: d.Description, CreatedAt: stamp(d.CreatedAt), CreatedBy: who, UpdatedAt: stamp(d.UpdatedAt),
		Deleted: d.Deleted, Filters: map[string]string{"date_from": d.DateFrom}, Tags: d.Tags,
	}
	if d.FlagID != 0 {
		v.FeatureFlag = &d.FlagID
	}
	return v
}

// liveKey is the key of a flag as events carry it, retired or not.
func liveKey(f *Flag) string { return strings.TrimSuffix(f.Key, retired(f)) }
