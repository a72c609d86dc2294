package flags

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/rules"
	"github.com/guidonhq/guidon/core/web"
)

func (h *HTTP) decidedRoutes(g *web.Router) {
	g.Manage("GET", flagsPath+"/evaluation_reasons", scopeRead, h.evaluationReasons)
	g.Manage("GET", flagsPath+"/my_flags", scopeRead, h.myFlags)
	g.Manage("POST", flagsPath+"/user_blast_radius", scopeRead, h.blastRadius)
	g.Manage("GET", flagsPath+"/:id/status", scopeRead, h.status)
	g.Manage("GET", flagsPath+"/:id/usage", scopeRead, h.usage)
}

// reasoned is a value and why it is so.
type reasoned struct {
	Value      any `json:"value"`
	Evaluation struct {
		Reason    string `json:"reason"`
		Condition *int   `json:"condition_index"`
	} `json:"evaluation"`
}

// evaluationReasons answers with every flag for a distinct id: the value of
// the active ones and its reason, and that the others are disabled.
func (h *HTTP) evaluationReasons(c *web.Call) error {
	q := eval.Request{DistinctID: strings.Clone(c.Query("distinct_id"))}
	if q.DistinctID == "" {
		return fault.Field("distinct_id", "required", "distinct_id is required")
	}
	var err error
	if q.Groups, err = askedGroups(c); err != nil {
		return err
	}
	out := map[string]reasoned{}
	for _, d := range h.decider.Decide(c.UserContext(), c.Project.ID, &q) {
		r := reasoned{Value: d.Value()}
		r.Evaluation.Reason = d.Reason.Code()
		if d.Failed != eval.CauseNone {
			r.Value, r.Evaluation.Reason = false, d.Failed.Code()
		} else if d.Condition >= 0 {
			r.Evaluation.Condition = &d.Condition
		}
		out[d.Key] = r
	}
	off := false
	inactive, _, err := h.service.List(c.UserContext(), c.Project, Query{Active: &off})
	if err != nil {
		return err
	}
	for _, f := range inactive {
		r := reasoned{Value: false}
		r.Evaluation.Reason = "disabled"
		out[f.Key] = r
	}
	return web.JSON(c.Ctx, out)
}

// askedGroups reads the query parameter groups: a JSON object of group types and
// keys.
func askedGroups(c *web.Call) (map[string]string, error) {
	raw := c.Query("groups")
	if raw == "" {
		return nil, nil
	}
	given, err := document.Parse([]byte(raw))
	if err != nil {
		return nil, fault.Field("groups", rules.CodeInvalid, "groups must be a JSON object of group types and keys.")
	}
	groups := map[string]string{}
	for _, name := range given.Names {
		key, _ := given.Get(name)
		if s, isText := document.Text(key); isText {
			groups[name] = s
		} else if document.KindOf(key) == "number" {
			groups[name] = string(key)
		}
	}
	return groups, nil
}

// myFlag is a flag and its value for the caller.
type myFlag struct {
	FeatureFlag view `json:"feature_flag"`
	Value       any  `json:"value"`
}

// myFlags answers with the active flags, newest first, decided for the holder
// of the key. One that cannot be computed is left out.
func (h *HTTP) myFlags(c *web.Call) error {
	q := eval.Request{DistinctID: c.Principal.User.DistinctID}
	var err error
	if q.Groups, err = askedGroups(c); err != nil {
		return err
	}
	values := map[int64]any{}
	for _, d := range h.decider.Decide(c.UserContext(), c.Project.ID, &q) {
		if d.Failed == eval.CauseNone {
			values[d.ID] = d.Value()
		}
	}
	on := true
	list, _, err := h.service.List(c.UserContext(), c.Project, Query{Active: &on})
	if err != nil {
		return err
	}
	views, err := h.service.show(c.UserContext(), c.Principal, list...)
	if err != nil {
		return err
	}
	out := make([]myFlag, 0, len(views))
	for _, v := range views {
		if value, ok := values[v.ID]; ok {
			out = append(out, myFlag{FeatureFlag: v, Value: value})
		}
	}
	return web.JSON(c.Ctx, out)
}

// blastView is the number of stored persons or groups of a condition set.
type blastView struct {
	Affected  int64 `json:"users_affected"`
	Total     int64 `json:"total_users"`
	Estimated bool  `json:"estimated,omitempty"`
	Unknown   int64 `json:"users_unknown,omitempty"`
}

func (h *HTTP) blastRadius(c *web.Call) error {
	body, err := c.Fields()
	if err != nil {
		return err
	}
	if !body.Has("condition") {
		return fault.New(fault.Invalid, rules.CodeInvalid, "Missing condition for which to get blast radius")
	}
	condition := body.Object("condition", web.Nullable)
	index := body.Int("group_type_index", web.Nullable, web.Min(0), web.Max(rules.MaxGroupTypes-1))
	if err := body.Err(); err != nil {
		return err
	}
	properties := json.RawMessage("[]")
	if d, err := document.Parse(condition.Value); err == nil {
		if raw, ok := d.Given("properties"); ok {
			properties = raw
		}
	}
	var groupIndex *int
	if n := value(index); n != nil {
		i := int(*n)
		groupIndex = &i
	}
	a, err := h.service.BlastRadius(c.UserContext(), c.Project, properties, groupIndex)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, blastView(a))
}

// status answers with the state of a flag and why it is so.
func (h *HTTP) status(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	f, err := h.service.Get(c.UserContext(), c.Project, id)
	if err != nil {
		return err
	}
	status, reason := f.Status(h.service.now())
	return web.JSON(c.Ctx, struct {
		Status     Status   `json:"status"`
		Reason     string   `json:"reason"`
		LastCalled web.Time `json:"last_called_at"`
	}{status, reason, web.Time(f.LastCalled)})
}

// usageView is how a flag was asked for, by answer and day.
type usageView struct {
	LastCalled web.Time      `json:"last_called_at"`
	Calls      int64         `json:"calls"`
	Days       []string      `json:"days"`
	Variants   []variantView `json:"variants"`
}

type variantView struct {
	Response string  `json:"response"`
	Calls    int64   `json:"calls"`
	People   int64   `json:"people"`
	Daily    []int64 `json:"daily"`
}

// usage answers with the calls of a flag over the last days, 30 unless the
// query has another number.
func (h *HTTP) usage(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	days, err := c.PositiveQuery("days", 30)
	if err != nil {
		return err
	}
	if days > 366 {
		return fault.Field("days", "max_value", "Ensure this value is less than or equal to "+strconv.Itoa(366)+".")
	}
	f, report, err := h.service.FlagUsage(c.UserContext(), c.Project, id, days)
	if err != nil {
		return err
	}
	v := usageView{LastCalled: web.Time(f.LastCalled), Days: report.Days, Variants: []variantView{}}
	for _, l := range report.Lines {
		v.Calls += l.Total.Events
		v.Variants = append(v.Variants, variantView{Response: l.Value, Calls: l.Total.Events, People: l.Total.People, Daily: l.Events})
	}
	return web.JSON(c.Ctx, v)
}
