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
	if c.linksOnly {
		return nil
	}
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
	if err := c.addPattern(name, value, at); err != nil {
		return err
	}
	filter, err := match.Compile(match.Spec{Operator: name, Value: value}, match.Options{Registry: c.refs.Operators, Limits: c.limits.Patterns})
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

// addPattern bounds the size of a regular expression before it is compiled, and
// the sum of those so far.
func (c *checker) addPattern(name string, value json.RawMessage, at string) error {
	size, err := match.CheckPattern(c.limits.Patterns, name, value)
	if err != nil {
		return bad(codeOf(err), "%s.value: %s", at, sentence(err))
	}
	if c.patterns += size; c.patterns > c.limits.Patterns.Definition {
		return c.patternSum()
	}
	return nil
}

// patternSum bounds the size of the regular expressions of a definition, and of
// its project.
func (c *checker) patternSum() error {
	err := c.limits.Patterns.CheckDefinition(c.kind, c.patterns)
	if err == nil {
		err = c.limits.Patterns.CheckProject(c.kind, c.patterns, c.refs.Patterns)
	}
	if err != nil {
		return bad(codeOf(err), "%s", sentence(err))
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
