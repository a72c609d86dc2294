package rules

import (
	"encoding/json"

	"github.com/guidonhq/guidon/core/flags/document"
)

// Checked is the result of a check that runs before a write transaction: the
// transaction blocks other writers, so it must not compile filters. Inside of
// it, Text repeats only the checks of references, which other writers may have
// changed meanwhile. The zero value has no filters.
type Checked struct {
	text   json.RawMessage
	err    error
	linked bool // it refers to flags or cohorts
	again  func(refs References, trees map[int64]document.CohortTree) error
}

// Failed returns a Checked whose Text fails with err.
func Failed(err error) Checked { return Checked{err: err} }

// Check is CheckFilters; its error is returned by Text.
func Check(raw json.RawMessage, refs References, limits Limits) Checked {
	out := Checked{linked: len(document.FlagDependencies(raw))+len(document.CohortReferences(raw)) > 0}
	out.text, out.err = CheckFilters(raw, refs, limits)
	out.again = func(refs References, _ map[int64]document.CohortTree) error {
		d, err := document.Parse(out.text)
		if err != nil {
			return err
		}
		return (&checker{kind: "flag", refs: refs, linksOnly: true}).document(d)
	}
	return out
}

// CheckedCohort is Check for CheckCohort.
func CheckedCohort(filters json.RawMessage, self int64, trees map[int64]document.CohortTree, refs References, limits Limits) Checked {
	out := Checked{linked: len(document.ReadCohortTree(filters).Cohorts) > 0}
	out.text, out.err = CheckCohort(filters, self, trees, refs, limits)
	out.again = func(refs References, trees map[int64]document.CohortTree) error {
		t := &treeChecker{checker: &checker{kind: "cohort", refs: refs, linksOnly: true}, self: self, trees: trees}
		_, err := t.group(document.CohortGroups(out.text), "properties")
		return err
	}
	return out
}

// Result returns the text and the error of the check alone.
func (c Checked) Result() (json.RawMessage, error) { return c.text, c.err }

// Linked reports whether the filters refer to flags or cohorts, so that Text
// needs the references of the transaction.
func (c Checked) Linked() bool { return c.err == nil && c.linked }

// Raw returns the text to store of filters that are Linked, for reading what they
// refer to.
func (c Checked) Raw() json.RawMessage { return c.text }

// Text returns the text to store, or the first broken rule. If the filters are
// Linked, refs and the trees of cohorts are those of the transaction; they are
// not used otherwise.
func (c Checked) Text(refs References, trees map[int64]document.CohortTree) (json.RawMessage, error) {
	if c.err != nil {
		return nil, c.err
	}
	if c.linked {
		if err := c.again(refs, trees); err != nil {
			return nil, err
		}
	}
	return c.text, nil
}
