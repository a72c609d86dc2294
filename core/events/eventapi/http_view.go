package eventapi

import (
	"encoding/json"
	"strings"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/sdk"
)

// eventView is the JSON form of an event.
type eventView struct {
	ID            string          `json:"id"` // the uuid: clients read either
	UUID          string          `json:"uuid"`
	ProjectID     int64           `json:"project_id"`
	Name          string          `json:"event"`
	DistinctID    string          `json:"distinct_id"`
	Timestamp     string          `json:"timestamp"`
	ReceivedAt    string          `json:"received_at"`
	Properties    json.RawMessage `json:"properties"`
	ElementsChain string          `json:"elements_chain,omitempty"`
	Elements      []elementView   `json:"elements"`
	PersonID      string          `json:"person_id,omitempty"`
	Person        *personView     `json:"person"`
}

// personView is the current person of an event.
type personView struct {
	UUID         string          `json:"uuid"`
	IsIdentified bool            `json:"is_identified"`
	DistinctIDs  []string        `json:"distinct_ids"` // that of the event
	Properties   json.RawMessage `json:"properties"`   // null without the scope person:read
}

// elementView is an element of a click, the clicked one first.
type elementView struct {
	Text      *string  `json:"text"`
	TagName   *string  `json:"tag_name"`
	AttrClass []string `json:"attr_class"`
	Href      *string  `json:"href"`
	AttrID    *string  `json:"attr_id"`
	NthChild  int      `json:"nth_child"`
	NthOfType int      `json:"nth_of_type"`
	Order     int      `json:"order"`
}

func viewsOf(c *web.Call, rows []events.Record) []eventView {
	out := make([]eventView, len(rows))
	for i := range rows {
		out[i] = viewOf(c, &rows[i])
	}
	return out
}

// liveView is an event without its person, which PersonID names.
func liveView(r *events.Record) ([]byte, error) {
	e := r.ToEvent()
	return json.Marshal(baseView(&e))
}

func baseView(e *sdk.Event) eventView {
	return eventView{
		ID: e.UUID, UUID: e.UUID, ProjectID: e.ProjectID, Name: e.Name, DistinctID: e.DistinctID,
		Timestamp: e.Timestamp.Format(web.TimeLayout), ReceivedAt: e.ReceivedAt.Format(web.TimeLayout),
		Properties: e.Properties, ElementsChain: e.ElementsChain, Elements: elementsOf(e), PersonID: e.PersonID,
	}
}

func viewOf(c *web.Call, r *events.Record) eventView {
	e := r.ToEvent()
	v := baseView(&e)
	if r.CurrentPerson == nil {
		return v
	}
	v.Person = &personView{UUID: *r.CurrentPerson, DistinctIDs: []string{e.DistinctID}}
	if r.PersonIdentified != nil {
		v.Person.IsIdentified = *r.PersonIdentified
	}
	if r.PersonProperties != nil && c.Principal.HasScope("person:read") {
		v.Person.Properties = json.RawMessage(*r.PersonProperties)
	}
	return v
}

// elementsOf reads the elements of an event. Absent texts are null.
func elementsOf(e *sdk.Event) []elementView {
	out := []elementView{}
	if e.ElementsChain == "" {
		return out
	}
	elements := match.NewChain(e.ElementsChain).Elements()
	for i := range elements {
		el := &elements[i]
		out = append(out, elementView{
			Text: optional(el.Text), TagName: optional(el.Tag), AttrClass: el.Classes(), Href: optional(el.Href), AttrID: optional(el.ID),
			NthChild: el.NthChild, NthOfType: el.NthOfType, Order: i,
		})
	}
	return out
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	s = strings.Clone(s)
	return &s
}
