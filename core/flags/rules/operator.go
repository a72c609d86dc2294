package rules

import (
	"encoding/json"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/match"
)

// notForFlags are operators that exist elsewhere and not in conditions.
var notForFlags = map[string]bool{"is_cleaned_path_exact": true, "flag_evaluates_to": true}

// operator checks that the operator of a filter is known and that the
// operator can use the value; the evaluator's own reading of it decides.
func (c *checker) operator(p *document.Object, at string) error {
	raw, ok := p.Given("operator")
	name, isText := document.Text(raw)
	if ok && !isText {
		return bad(codeOperator, "%s.operator must be a text, got %s", at, shown(raw))
	}
	if notForFlags[name] {
		return bad(codeNotForFlag, "%s.operator: %s is not supported in feature flag filters", at, name)
	}
	if name == "in" || name == "not_in" {
		return bad(codeOperator, "%s.operator: %s is for cohorts only", at, name)
	}
	value, _ := p.Get("value")
	if err := c.listLength(p, value); err != nil {
		return err
	}
	if kind := document.KindOf(value); match.FormOf(name) == match.VersionForm && kind != "string" && kind != "number" {
		return bad(codeValue, "%s.value: %s compares with a version such as 1.2.3, got %s", at, name, shown(value))
	}
	filter, err := match.Compile(match.Spec{Operator: name, Value: value}, match.Options{Registry: c.refs.Operators})
	if err != nil {
		return bad(codeOperator, "%s.operator: %s", at, sentence(err))
	}
	if problem := filter.Problem(); problem != nil {
		return bad(codeOf(problem), "%s.value: %s", at, sentence(problem))
	}
	if own, _ := match.Canonical(name); ok && own != name {
		p.Set("operator", document.Quote(own))
	}
	return nil
}

// listLength bounds how many values one filter lists.
func (c *checker) listLength(p *document.Object, value json.RawMessage) error {
	if !document.StartsWith(value, '[') {
		return nil
	}
	list, err := document.ParseList(value)
	if err == nil && len(list) > c.limits.ListValues {
		key, _ := p.Get("key")
		name, _ := document.Text(key)
		return bad(CodeInvalid, "Property group expressions of type %s cannot contain more than %d values.", name, c.limits.ListValues)
	}
	return nil
}

// sentence returns the text of an error for API answers.
func sentence(err error) string {
	if f := fault.From(err); f != nil {
		return f.Detail
	}
	return err.Error()
}

func codeOf(err error) string {
	if f := fault.From(err); f != nil && f.Code != "" {
		return f.Code
	}
	return codeValue
}
