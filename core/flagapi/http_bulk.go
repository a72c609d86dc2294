package flagapi

import (
	"slices"
	"strconv"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/web"
)

// maxBulk is the maximum number of flags of a bulk request.
const maxBulk = 1000

// bulkHTTP serves requests for several flags, and what refers to one flag.
type bulkHTTP struct{ service *flags.Service }

func (h bulkHTTP) routes(g *web.Router) {
	g.Manage("POST", projectFlagsPath+"/bulk_keys", scopeRead, h.keys)
	g.Manage("POST", projectFlagsPath+"/bulk_delete", scopeWrite, h.delete)
	g.Manage("GET", projectFlagsPath+"/matching_ids", scopeRead, h.matching)
	g.Manage("GET", projectFlagsPath+"/:id/dependent_flags", scopeRead, h.dependents)
	g.Manage("GET", projectFlagsPath+"/:id/versions/:version", scopeRead, h.version)
}

// bulkIDs reads the field ids. Ids that are no numbers are returned as unreadable.
func bulkIDs(body *web.Fields) (ids []int64, unreadable []string) {
	for _, raw := range body.List("ids", web.Required, web.Max(maxBulk)).Value {
		text := string(raw)
		if unquoted, err := strconv.Unquote(text); err == nil {
			text = unquoted
		}
		if id, err := strconv.ParseInt(text, 10, 64); err == nil && id > 0 {
			ids = append(ids, id)
		} else {
			unreadable = append(unreadable, text)
		}
	}
	return ids, unreadable
}

// keys answers with the keys of flags by id. Unknown ids are left out.
func (h bulkHTTP) keys(c *web.Call) error {
	body, err := c.Fields()
	if err != nil {
		return err
	}
	ids, unreadable := bulkIDs(body)
	if err := body.Err(); err != nil {
		return err
	}
	out := struct {
		Keys    map[string]string `json:"keys"`
		Warning string            `json:"warning,omitempty"`
	}{Keys: map[string]string{}}
	if len(unreadable) > 0 {
		out.Warning = "Invalid flag IDs ignored: " + strconv.Quote(unreadable[0])
	}
	found, err := h.service.ByIDs(c.UserContext(), c.Project, ids)
	if err != nil {
		return err
	}
	for _, f := range found {
		if !f.Deleted {
			out.Keys[strconv.FormatInt(f.ID, 10)] = f.Key
		}
	}
	return web.JSON(c.Ctx, out)
}

type bulkDeleted struct {
	ID  int64  `json:"id"`
	Key string `json:"key"`
}

type bulkError struct {
	ID     any    `json:"id"`
	Key    string `json:"key,omitempty"`
	Reason string `json:"reason"`
}

// delete deletes flags one by one: a flag that cannot be deleted, such as one that
// others depend on, is reported and does not stop the others.
func (h bulkHTTP) delete(c *web.Call) error {
	body, err := c.Fields()
	if err != nil {
		return err
	}
	ids, unreadable := bulkIDs(body)
	if err := body.Err(); err != nil {
		return err
	}
	out := struct {
		Deleted []bulkDeleted `json:"deleted"`
		Errors  []bulkError   `json:"errors"`
	}{[]bulkDeleted{}, []bulkError{}}
	for _, text := range unreadable {
		out.Errors = append(out.Errors, bulkError{ID: text, Reason: "Invalid flag ID"})
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		f, err := h.deleteOne(c, id)
		switch problem := fault.From(err); {
		case err == nil:
			out.Deleted = append(out.Deleted, bulkDeleted{id, f.Key})
		case problem == nil || problem.Kind == fault.Unavailable:
			return err
		default:
			out.Errors = append(out.Errors, bulkError{ID: id, Reason: problem.Detail})
		}
	}
	return web.JSON(c.Ctx, out)
}

// deleteOne deletes a flag and returns it with the key that it had.
func (h bulkHTTP) deleteOne(c *web.Call, id int64) (*flags.Flag, error) {
	s := h.service
	before, err := s.Get(c.UserContext(), c.Project, id)
	if err != nil {
		return nil, err
	}
	if before.Deleted {
		return nil, errNotFound
	}
	yes := true
	_, err = s.Update(c.UserContext(), c.Principal, c.Project, id, flags.Input{Deleted: &yes})
	return before, err
}

// matching answers with the ids of the flags that the filters of a list select, of
// those that the caller may edit.
func (h bulkHTTP) matching(c *web.Call) error {
	q, err := flags.ReadQuery(c)
	if err != nil {
		return err
	}
	list, _, err := h.service.List(c.UserContext(), c.Project, q)
	if err != nil {
		return err
	}
	may, err := h.service.CanEdit(c.UserContext(), c.Principal, list...)
	if err != nil {
		return err
	}
	ids := []int64{}
	for _, f := range list {
		if may[f.ID] {
			ids = append(ids, f.ID)
		}
	}
	return web.JSON(c.Ctx, struct {
		IDs   []int64 `json:"ids"`
		Total int     `json:"total"`
	}{ids, len(ids)})
}

// dependents answers with the flags whose conditions read this flag.
func (h bulkHTTP) dependents(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	list, err := h.service.Dependents(c.UserContext(), c.Project, id)
	if err != nil {
		return err
	}
	type dependent struct {
		ID   int64  `json:"id"`
		Key  string `json:"key"`
		Name string `json:"name"`
	}
	out := make([]dependent, len(list))
	for i, f := range list {
		out[i] = dependent{f.ID, f.Key, f.Name}
	}
	return web.JSON(c.Ctx, out)
}

// version answers with the fields that a flag had in a version.
func (h bulkHTTP) version(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	number, err := idOf(c, "version")
	if err != nil {
		return err
	}
	f, err := h.service.Version(c.UserContext(), c.Project, id, number)
	if err != nil {
		return err
	}
	views, err := h.service.Show(c.UserContext(), c.Principal, f)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, views[0])
}
