package decide

import (
	"encoding/json"
	"net/netip"
	"strconv"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/web"
)

// explain answers how one flag gets its value for a person.
func (h *HTTP) explain(c *web.Call) error {
	id, err := strconv.ParseInt(c.Params("id"), 10, 64)
	key, ok := h.decider.snapshots.Set(c.Project.ID).KeyByID(id)
	if err != nil || !ok {
		return fault.New(fault.NotFound, "not_found", "Not found.")
	}
	q, err := h.explainRequest(c)
	if err != nil {
		return err
	}
	q.FlagKeys = []string{key}
	list, age := h.decider.Explain(c.UserContext(), c.Project.ID, q)
	setAge(c.Ctx, age)
	for _, e := range list {
		if e.ID == id {
			hideStored(c, e)
			return web.JSON(c.Ctx, e)
		}
	}
	return fault.New(fault.NotFound, "not_found", "Not found.")
}

// explainAll answers with the explanation of all flags, or of the named ones.
func (h *HTTP) explainAll(c *web.Call) error {
	q, err := h.explainRequest(c)
	if err != nil {
		return err
	}
	out := struct {
		Errors bool                         `json:"errorsWhileComputingFlags"`
		Flags  map[string]*eval.Explanation `json:"flags"`
	}{Flags: map[string]*eval.Explanation{}}
	list, age := h.decider.Explain(c.UserContext(), c.Project.ID, q)
	setAge(c.Ctx, age)
	for _, e := range list {
		hideStored(c, e)
		out.Flags[e.Key] = e
		out.Errors = out.Errors || !e.Computed
	}
	return web.JSON(c.Ctx, out)
}

// hideStored removes stored values that the key may not read.
func hideStored(c *web.Call, e *eval.Explanation) {
	e.HideStored(!c.Principal.HasScope("person:read"), !c.Principal.HasScope("group:read"))
}

// explainRequest reads the subject of an explanation. The fields have the names
// of a decide request; $ip is the address of the person, whose location is used.
func (h *HTTP) explainRequest(c *web.Call) (*eval.Request, error) {
	f, err := c.Fields()
	if err != nil {
		return nil, err
	}
	q := &eval.Request{
		DistinctID:       truncateID(f.String("distinct_id", web.Required, web.Untrimmed).Value),
		AnonymousID:      truncateID(f.String("$anon_distinct_id", web.Nullable, web.Blank, web.Untrimmed).Value),
		PersonProperties: f.Object("person_properties", web.Nullable).Value,
	}
	q.Groups, q.GroupProperties = groupsIn(f)
	if ip := f.String("$ip", web.Nullable, web.Blank); ip.Value != "" {
		addr, err := netip.ParseAddr(ip.Value)
		if err != nil {
			f.Fail("$ip", "invalid_input", "The address of the person must be an IP address.")
		}
		q.Location = h.decider.locationOf(addr)
	}
	q.DeviceID = deviceIn(f, q.PersonProperties)
	q.Scope.Runtime, _ = eval.ParseRuntime(f.String("evaluation_runtime", web.Nullable, web.Blank).Value)
	q.Scope.Contexts = f.Strings("evaluation_contexts", web.Nullable).Value
	if keys := f.Strings("flag_keys_to_evaluate", web.Nullable); keys.Set && !keys.Null {
		q.FlagKeys = append([]string{}, keys.Value...)
	}
	return q, f.Err()
}

// deviceIn returns the id of the device: a field of the request, else a property of
// the person.
func deviceIn(f *web.Fields, properties []byte) string {
	for _, name := range []string{"$device_id", "device_id"} {
		if id := f.String(name, web.Nullable, web.Blank, web.Untrimmed).Value; id != "" {
			return truncateID(id)
		}
	}
	id := ""
	eachMember(properties, func(name string, v *fastjson.Value) {
		if name == "$device_id" && v.Type() == fastjson.TypeString {
			id = truncateID(string(v.GetStringBytes()))
		}
	})
	return id
}

func groupsIn(f *web.Fields) (keys map[string]string, properties map[string]json.RawMessage) {
	keys, properties = map[string]string{}, map[string]json.RawMessage{}
	eachMember(f.Object("groups", web.Nullable).Value, func(name string, v *fastjson.Value) {
		switch v.Type() {
		case fastjson.TypeString:
			keys[name] = string(v.GetStringBytes())
		case fastjson.TypeNumber:
			keys[name] = string(jsontext.AppendJSON(nil, v))
		default:
			f.Fail("groups", "invalid_input", "The key of a group must be a string or a number.")
		}
	})
	eachMember(f.Object("group_properties", web.Nullable).Value, func(name string, v *fastjson.Value) {
		if v.Type() != fastjson.TypeObject {
			f.Fail("group_properties", "invalid_input", "The properties of a group must be an object.")
			return
		}
		properties[name] = jsontext.AppendJSON(nil, v)
	})
	return keys, properties
}

// eachMember calls fn for each member of a JSON object, which may be missing.
func eachMember(raw []byte, fn func(name string, v *fastjson.Value)) {
	v, err := fastjson.ParseBytes(raw)
	if err != nil {
		return
	}
	v.GetObject().Visit(func(name []byte, v *fastjson.Value) { fn(string(name), v) })
}
