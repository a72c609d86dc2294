package persons

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// Relations finds what occurs in the events of a person or group.
type Relations interface {
	// RelatedToPerson returns the keys of the groups in the events of a person after a
	// time, by index of type.
	RelatedToPerson(ctx context.Context, projectID int64, personID int64, after time.Time) (RelatedKeys, error)
	// RelatedToGroup returns the other groups and the distinct ids in the events of
	// a group.
	RelatedToGroup(ctx context.Context, projectID int64, index int, key string, after time.Time) (RelatedKeys, error)
}

// RelatedKeys are the keys of related groups by index of type, and distinct ids.
// Since is not zero if events before it were not read.
type RelatedKeys struct {
	Groups      map[int][]string
	DistinctIDs []string
	Since       time.Time
}

// headerIncomplete is the header of answers for which not all events were read: the
// time of the oldest event that was.
const headerIncomplete = "Guidon-Incomplete-Before"

// relatedDays is how long ago an event relates persons and groups.
const relatedDays = 90

// ActorView is a person in lists of persons and groups, in the form that clients of
// this protocol know: its id is the uuid.
type ActorView struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	View
	MatchedRecordings []struct{} `json:"matched_recordings"`
	ValueAtDataPoint  *float64   `json:"value_at_data_point"`
}

// Actors returns the form of persons in lists of persons and groups.
func Actors(list []View) []ActorView {
	out := make([]ActorView, len(list))
	for i := range list {
		out[i] = ActorView{Type: "person", ID: list[i].UUID, View: list[i], MatchedRecordings: []struct{}{}}
	}
	return out
}

// groupActorView is a group in lists of persons and groups.
type groupActorView struct {
	Type              string          `json:"type"`
	ID                string          `json:"id"`
	TypeIndex         int             `json:"group_type_index"`
	Key               string          `json:"group_key"`
	Properties        json.RawMessage `json:"properties"`
	CreatedAt         string          `json:"created_at"`
	MatchedRecordings []struct{}      `json:"matched_recordings"`
	ValueAtDataPoint  *float64        `json:"value_at_data_point"`
}

// related answers with the persons and groups that share events of the last 90 days
// with a group, or with the groups that do with a person.
func (h *HTTP) related(c *web.Call) error {
	if err := c.Principal.RequireScope("person:read"); err != nil {
		return err
	}
	id := c.Query("id")
	if id == "" {
		return fault.Field("id", "required", "This field is required.")
	}
	keys, err := h.relatedKeys(c, id)
	if err != nil {
		return err
	}
	out := []any{}
	people, err := h.relatedPersons(c, keys.DistinctIDs)
	if err != nil {
		return err
	}
	for _, p := range people {
		out = append(out, p)
	}
	for _, index := range slices.Sorted(maps.Keys(keys.Groups)) {
		found, err := h.persons.Groups.ByKeys(c.UserContext(), c.Project.ID, index, keys.Groups[index])
		if err != nil {
			return err
		}
		for i := range found {
			g := viewGroup(&found[i])
			out = append(out, groupActorView{
				Type: "group", ID: g.Key, TypeIndex: g.TypeIndex, Key: g.Key, Properties: g.Properties, CreatedAt: g.CreatedAt, MatchedRecordings: []struct{}{},
			})
		}
	}
	if !keys.Since.IsZero() {
		c.Set(headerIncomplete, formatTime(keys.Since))
	}
	return web.JSON(c.Ctx, out)
}

func (h *HTTP) relatedKeys(c *web.Call, id string) (RelatedKeys, error) {
	after := time.Now().AddDate(0, 0, -relatedDays)
	if c.Query("group_type_index") == "" {
		p, err := h.persons.Get(c.UserContext(), c.Project.ID, id)
		if err != nil {
			return RelatedKeys{}, err
		}
		return h.relations.RelatedToPerson(c.UserContext(), c.Project.ID, p.ID, after)
	}
	index, err := typeIndex(c)
	if err != nil {
		return RelatedKeys{}, err
	}
	if _, err := h.persons.Groups.Get(c.UserContext(), c.Project.ID, index, id); err != nil {
		return RelatedKeys{}, err
	}
	return h.relations.RelatedToGroup(c.UserContext(), c.Project.ID, index, id, after)
}

// relatedPersons returns the persons of distinct ids, the oldest first.
func (h *HTTP) relatedPersons(c *web.Call, distinctIDs []string) ([]ActorView, error) {
	refs, err := h.persons.ResolveDistinctIDs(c.UserContext(), c.Project.ID, distinctIDs)
	if err != nil {
		return nil, err
	}
	numbers := map[int64]bool{}
	for _, ref := range refs {
		numbers[ref.ID] = true
	}
	found, err := h.persons.ByIDs(c.UserContext(), c.Project.ID, slices.Sorted(maps.Keys(numbers)))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b Person) int { return a.Position().Compare(b.Position()) })
	views, err := h.Views(c, found)
	return Actors(views), err
}
