package rules

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/guidonhq/guidon/core/flags/document"
)

// groups checks the condition sets in the written order.
func (c *checker) groups(d *document.Object, index *int64) error {
	raw, ok := d.Get("groups")
	if !ok {
		return c.bareProperties(d, index)
	}
	sets, err := document.ParseList(raw)
	if err != nil {
		return bad(CodeInvalid, "groups must be a list of condition sets, got %s", document.KindOf(raw))
	}
	for i, raw := range sets {
		path := fmt.Sprintf("groups[%d]", i)
		set, err := document.Parse(raw)
		if err != nil {
			return bad(CodeInvalid, "%s must be an object, got %s", path, document.KindOf(raw))
		}
		if err := c.set(set, path, index); err != nil {
			return err
		}
		sets[i] = set.Raw()
	}
	d.Set("groups", document.JoinList(sets))
	return nil
}

// bareProperties checks the older form: one set with top-level properties.
func (c *checker) bareProperties(d *document.Object, index *int64) error {
	if err := percentage(d, "filters", false); err != nil {
		return err
	}
	return c.properties(d, "", index)
}

func (c *checker) set(set *document.Object, path string, index *int64) error {
	if err := percentage(set, path, false); err != nil {
		return err
	}
	if _, own := set.Get("aggregation_group_type_index"); own {
		var err error
		if index, err = groupIndex(set, path+"."); err != nil {
			return err
		}
	}
	if raw, ok := set.Given("variant"); ok {
		name, isText := document.Text(raw)
		if !isText || name != "" && !c.variants[name] {
			return bad(CodeInvalid, "Filters are not valid (variant override does not exist): %s.variant is %s", path, shown(raw))
		}
	}
	return c.properties(set, path+".", index)
}

// percentage checks rollout_percentage of a condition set or a variant.
func percentage(d *document.Object, path string, required bool) error {
	raw, ok := d.Given("rollout_percentage")
	if !ok {
		if required {
			return bad(CodeInvalid, "%s.rollout_percentage must be a number between 0 and 100", path)
		}
		return nil
	}
	if document.KindOf(raw) != "number" {
		return bad(CodeInvalid, "%s.rollout_percentage must be a number, got %s", path, shown(raw))
	}
	if p, err := strconv.ParseFloat(string(raw), 64); err != nil || p < 0 || p > 100 {
		return bad(CodeInvalid, "%s.rollout_percentage must be between 0 and 100, got %s", path, shown(raw))
	}
	return nil
}

// properties checks the filters of one set; index is the group type the set
// is bucketed by, nil for persons.
func (c *checker) properties(d *document.Object, path string, index *int64) error {
	raw, ok := d.Given("properties")
	if !ok {
		return nil
	}
	list, err := document.ParseList(raw)
	if err != nil {
		return bad(CodeInvalid, "%sproperties must be a list, got %s", path, document.KindOf(raw))
	}
	for i, raw := range list {
		at := fmt.Sprintf("%sproperties[%d]", path, i)
		p, err := document.Parse(raw)
		if err != nil {
			return bad(CodeInvalid, "%s must be an object, got %s", at, document.KindOf(raw))
		}
		if err := c.property(p, at, index); err != nil {
			return err
		}
		list[i] = p.Raw()
	}
	d.Set("properties", document.JoinList(list))
	return nil
}

// property checks one filter by its type.
func (c *checker) property(p *document.Object, at string, index *int64) error {
	kind, err := c.propertyType(p, at, index)
	if err != nil {
		return err
	}
	switch kind {
	case "cohort":
		return c.cohort(p, at)
	case "flag":
		return c.dependency(p, at)
	}
	raw, ok := p.Given("key")
	if name, isText := document.Text(raw); !ok || !isText || name == "" {
		return bad(CodeInvalid, "%s.key must name the property", at)
	}
	return c.operator(p, at)
}

// propertyType reads the type of a filter. The default is the subject of the set:
// the person, or the group that the set is bucketed by.
func (c *checker) propertyType(p *document.Object, at string, index *int64) (string, error) {
	kind := "person"
	if index != nil {
		kind = "group"
	}
	if raw, ok := p.Given("type"); ok {
		kind, _ = document.Text(raw)
	}
	if index == nil {
		if kind == "person" || kind == "cohort" || kind == "flag" {
			return kind, nil
		}
		return "", bad(CodeInvalid, "Filters are not valid (can only use person, cohort, and flag properties): %s.type is %q", at, kind)
	}
	if kind == "flag" {
		return kind, nil
	}
	if kind != "group" {
		return "", bad(CodeInvalid, "Filters are not valid (can only use group properties): %s.type is %q", at, kind)
	}
	if raw, ok := p.Given("group_type_index"); ok {
		var own int64
		if json.Unmarshal(raw, &own) != nil || own != *index {
			return "", bad(CodeInvalid, "Filters are not valid (can only use properties of group type %d): %s.group_type_index is %s", *index, at, shown(raw))
		}
	}
	return kind, nil
}

// cohort checks a membership filter: the cohort exists and can be evaluated.
func (c *checker) cohort(p *document.Object, at string) error {
	if raw, ok := p.Given("operator"); ok {
		if op, _ := document.Text(raw); op != "in" && op != "not_in" && op != "exact" {
			return bad(codeOperator, "%s.operator: a cohort is tested with in or not_in, got %s", at, shown(raw))
		}
	}
	raw, _ := p.Get("value")
	id, ok := document.Integer(raw)
	ref, found := c.refs.Cohorts[id]
	if !ok || !found {
		return bad(codeNoCohort, "Cohort with id %s does not exist", shown(raw))
	}
	if ref.Behavioural {
		return bad(codeBehaviour, "Cohort '%s' with event filters cannot be used in feature flags.", ref.Name)
	}
	p.Remove("cohort_name")
	return nil
}

// looseGroups checks the form of lists in older formats.
func (c *checker) looseGroups(d *document.Object, name string) error {
	raw, ok := d.Given(name)
	if !ok {
		return nil
	}
	sets, err := document.ParseList(raw)
	if err != nil {
		return bad(CodeInvalid, "%s must be a list, got %s", name, document.KindOf(raw))
	}
	for i, raw := range sets {
		path := fmt.Sprintf("%s[%d]", name, i)
		set, err := document.Parse(raw)
		if err != nil {
			return bad(CodeInvalid, "%s must be an object, got %s", path, document.KindOf(raw))
		}
		if err := percentage(set, path, false); err != nil {
			return err
		}
		if err := c.properties(set, path+".", nil); err != nil {
			return err
		}
		sets[i] = set.Raw()
	}
	d.Set(name, document.JoinList(sets))
	return nil
}
