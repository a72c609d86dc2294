package rules

import (
	"slices"
	"strings"

	"github.com/guidonhq/guidon/core/flags/document"
)

// dependency checks a filter on another flag: it names a flag of the project
// that is active, is not the flag itself and does not depend on it.
func (c *checker) dependency(p *document.Object, at string) error {
	raw, _ := p.Get("operator")
	if op, _ := document.Text(raw); op != "flag_evaluates_to" {
		return bad(CodeInvalid, "%s.operator: a flag dependency must use flag_evaluates_to, got %s", at, shown(raw))
	}
	raw, _ = p.Get("key")
	id, ok := document.Integer(raw)
	if !ok {
		return bad(CodeInvalid, "%s.key: a flag dependency names the other flag by its id, got %s", at, shown(raw))
	}
	if value, ok := p.Given("value"); !ok || document.KindOf(value) != "boolean" && document.KindOf(value) != "string" {
		return bad(codeValue, "%s.value: a flag evaluates to true, false or the key of a variant", at)
	}
	if id == c.refs.Self && id != 0 {
		return bad(CodeInvalid, "%s.key: a flag cannot depend on itself", at)
	}
	ref, ok := c.refs.Flags[id]
	if !ok {
		return bad(CodeInvalid, "%s.key: flag with id %d does not exist", at, id)
	}
	if path := c.pathToSelf(id, map[int64]bool{}); path != nil {
		way := strings.Join(append([]string{c.refs.Flags[c.refs.Self].Key}, path...), " → ")
		return bad(CodeInvalid, "%s.key: flags would depend on each other: %s", at, way)
	}
	if !ref.Active {
		return bad(CodeInvalid, "%s.key: flag %q is disabled and cannot be depended on", at, ref.Key)
	}
	value, _ := p.Get("value")
	if name, isText := document.Text(value); isText && !slices.Contains(ref.Variants, name) {
		return bad(codeValue, "%s.value: flag %q has no variant %q", at, ref.Key, name)
	}
	return nil
}

// pathToSelf follows the dependencies of a flag. It returns the keys of the path to
// the flag that is written, or nil if it does not depend on that flag.
func (c *checker) pathToSelf(id int64, seen map[int64]bool) []string {
	self := c.refs.Flags[c.refs.Self].Key
	if c.refs.Self == 0 || seen[id] {
		return nil
	}
	seen[id] = true
	for _, next := range c.refs.Flags[id].DependsOn {
		if next == c.refs.Self {
			return []string{c.refs.Flags[id].Key, self}
		}
		if path := c.pathToSelf(next, seen); path != nil {
			return append([]string{c.refs.Flags[id].Key}, path...)
		}
	}
	return nil
}
