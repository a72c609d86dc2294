package dashboards

import (
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web"
)

// dashboardView is the JSON form of a dashboard; tiles are left out in lists.
type dashboardView struct {
	ID          int64             `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	CreatedAt   web.Time          `json:"created_at"`
	CreatedBy   *auth.User        `json:"created_by"`
	UpdatedAt   web.Time          `json:"updated_at"`
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

func viewOf(d *Dashboard, users map[int64]auth.User) dashboardView {
	v := dashboardView{
		ID: d.ID, Name: d.Name, Description: d.Description, CreatedAt: web.Time(d.CreatedAt), UpdatedAt: web.Time(d.UpdatedAt),
		Deleted: d.Deleted, Filters: map[string]string{"date_from": d.DateFrom}, Tags: d.Tags,
	}
	if u, ok := users[d.CreatedBy]; ok {
		v.CreatedBy = &u
	}
	if d.FlagID != 0 {
		v.FeatureFlag = &d.FlagID
	}
	return v
}
