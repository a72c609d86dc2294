package flags

import (
	"encoding/json"
	"strings"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/rules"
	"github.com/guidonhq/guidon/core/web"
)

// evaluationHTTP serves evaluated flags and the audience of a condition set.
type evaluationHTTP struct {
	service *Service
	decider *decide.Decider
}

func (h evaluationHTTP) routes(g *web.Router) {
	g.Manage("GET", flagsPath+"/evaluation_reasons", scopeRead, h.evaluationReasons)
	g.Manage("GET", flagsPath+"/my_flags", scopeRead, h.myFlags)
	g.Manage("POST", flagsPath+"/user_blast_radius", scopeRead, h.blastRadius)
}

// reasoned is a value and its reason.
type reasoned struct {
	Value      any `json:"value"`
	Evaluation struct {
		Reason    string `json:"reason"`
		Condition *int   `json:"condition_index"`
	} `json:"evaluation"`
}

// evaluationReasons answers with every flag for a distinct id: the value and its
// reason. Inactive flags are false with the reason disabled.
func (h evaluationHTTP) evaluationReasons(c *web.Call) error {
	q := eval.Request{DistinctID: strings.Clone(c.Query("distinct_id"))}
	if q.DistinctID == "" {
		return fault.Field("distinct_id", "required", "distinct_id is required")
	}
	var err error
	if q.Groups, err = rules.ReadGroups(c.Query("groups")); err != nil {
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

// myFlag is a flag and its value for the caller.
type myFlag struct {
	FeatureFlag View `json:"feature_flag"`
	Value       any  `json:"value"`
}

// myFlags answers with the active flags, newest first, evaluated for the owner of
// the key. Flags that cannot be computed are left out.
func (h evaluationHTTP) myFlags(c *web.Call) error {
	q := eval.Request{DistinctID: c.Principal.User.DistinctID}
	var err error
	if q.Groups, err = rules.ReadGroups(c.Query("groups")); err != nil {
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
	views, err := h.service.Show(c.UserContext(), c.Principal, list...)
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

// blastView is the JSON form of an audience.
type blastView struct {
	Affected  int64 `json:"users_affected"`
	Total     int64 `json:"total_users"`
	Estimated bool  `json:"estimated,omitempty"`
	Unknown   int64 `json:"users_unknown,omitempty"`
}

// blastRadius answers with the audience of a condition set.
func (h evaluationHTTP) blastRadius(c *web.Call) error {
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
	properties, groupIndex, err := conditionOf(condition.Value, value(index))
	if err != nil {
		return err
	}
	a, err := h.service.BlastRadius(c.UserContext(), c.Project, properties, groupIndex)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, blastView(a))
}

// conditionOf returns the properties of a condition set, and the group type that it
// is about: the given one or its own.
func conditionOf(condition json.RawMessage, given *int64) (properties json.RawMessage, groupIndex *int, err error) {
	properties = json.RawMessage("[]")
	if given != nil {
		i := int(*given)
		groupIndex = &i
	}
	d, err := document.Parse(condition)
	if err != nil {
		return properties, groupIndex, nil //nolint:nilerr // no condition: everyone
	}
	if raw, ok := d.Given("properties"); ok {
		properties = raw
	}
	raw, ok := d.Given("aggregation_group_type_index")
	if !ok {
		return properties, groupIndex, nil
	}
	own, isInt := document.Integer(raw)
	if !isInt || own < 0 || own >= rules.MaxGroupTypes {
		return nil, nil, fault.New(fault.Invalid, rules.CodeInvalid, "condition.aggregation_group_type_index must be the index of a group type")
	}
	if i := int(own); groupIndex == nil {
		groupIndex = &i
	} else if *groupIndex != i {
		return nil, nil, fault.New(fault.Invalid, rules.CodeInvalid, "group_type_index and condition.aggregation_group_type_index must be equal")
	}
	return properties, groupIndex, nil
}
