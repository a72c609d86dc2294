package flags

import (
	"encoding/json"
	"strconv"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/web"
)

// explain answers how one flag comes to its value for somebody.
func (h *DecideHTTP) explain(c *web.Call) error {
	id, err := strconv.ParseInt(c.Params("id"), 10, 64)
	key, ok := h.decider.snapshots.Set(c.Project.ID).keyOf(id)
	if err != nil || !ok {
		return fault.New(fault.NotFound, "not_found", "Not found.")
	}
	q, err := questionIn(c)
	if err != nil {
		return err
	}
	q.FlagKeys = []string{key}
	for _, e := range h.decider.Explain(c.UserContext(), c.Project.ID, q) {
		if e.ID == id {
			return web.JSON(c.Ctx, e)
		}
	}
	return fault.New(fault.NotFound, "not_found", "Not found.")
}

// explainAll does so for all flags, or for those that are named.
func (h *DecideHTTP) explainAll(c *web.Call) error {
	q, err := questionIn(c)
	if err != nil {
		return err
	}
	out := struct {
		Errors bool                    `json:"errorsWhileComputingFlags"`
		Flags  map[string]*Explanation `json:"flags"`
	}{Flags: map[string]*Explanation{}}
	for _, e := range h.decider.Explain(c.UserContext(), c.Project.ID, q) {
		out.Flags[e.Key] = e
		out.Errors = out.Errors || !e.Computed
	}
	return web.JSON(c.Ctx, out)
}

// questionIn reads for whom flags are to be explained; the names are those of
// a decide request.
func questionIn(c *web.Call) (*Question, error) {
	f, err := c.Fields()
	if err != nil {
		return nil, err
	}
	q := &Question{
		DistinctID:       shortened(f.String("distinct_id", web.Required, web.Untrimmed).Value),
		AnonymousID:      shortened(f.String("$anon_distinct_id", web.Nullable, web.Blank, web.Untrimmed).Value),
		PersonProperties: f.Object("person_properties", web.Nullable).Value,
	}
	q.Groups, q.GroupProperties = groupsIn(f)
	if keys := f.Strings("flag_keys_to_evaluate", web.Nullable); keys.Set && !keys.Null {
		q.FlagKeys = append([]string{}, keys.Value...)
	}
	return q, f.Err()
}

func groupsIn(f *web.Fields) (keys map[string]string, properties map[string]json.RawMessage) {
	keys, properties = map[string]string{}, map[string]json.RawMessage{}
	if raw := f.Object("groups", web.Nullable).Value; raw != nil {
		eachMember(raw, func(name string, v *fastjson.Value) {
			switch v.Type() {
			case fastjson.TypeString, fastjson.TypeNumber:
				keys[name] = looseText(v)
			default:
				f.Fail("groups", "invalid_input", "The key of a group must be a string or a number.")
			}
		})
	}
	if raw := f.Object("group_properties", web.Nullable).Value; raw != nil {
		eachMember(raw, func(name string, v *fastjson.Value) {
			if v.Type() != fastjson.TypeObject {
				f.Fail("group_properties", "invalid_input", "The properties of a group must be an object.")
				return
			}
			properties[name] = match.AppendJSON(nil, v)
		})
	}
	return keys, properties
}

func eachMember(raw []byte, fn func(name string, v *fastjson.Value)) {
	o, err := readObject(raw)
	if err != nil {
		return
	}
	for name, v := range o {
		fn(name, v)
	}
}

// keyOf finds the key of a flag by its id.
func (s *Set) keyOf(id int64) (string, bool) {
	for i := range s.flags {
		if s.flags[i].id == id {
			return s.flags[i].key, true
		}
	}
	return "", false
}
