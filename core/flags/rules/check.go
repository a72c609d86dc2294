package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/eval/filters"
	"github.com/guidonhq/guidon/core/match"
)

// Limits bound what one flag may hold.
type Limits struct {
	// FiltersBytes is the largest filters text accepted.
	FiltersBytes int
	// ListValues is the most values one condition may list.
	ListValues int
	// Patterns bound the regular expressions; zero fields have the defaults.
	Patterns match.Limits
}

// References are the objects that filters refer to. The caller looks them up, so
// that the rules read no store.
type References struct {
	Self    int64               // the flag that is written; 0 for a new one
	Flags   map[int64]FlagRef   // the flags of the project that are not deleted
	Cohorts map[int64]CohortRef // the cohorts of the project that are not deleted
	// Operators finds the operators of plugins. Nil disables them.
	Operators match.Registry
	// Patterns is the size of the regular expressions of the other flags and
	// cohorts of the project.
	Patterns int64
}

// FlagRef is another flag as the rules need it.
type FlagRef struct {
	Key       string
	Active    bool
	DependsOn []int64
	Variants  []string // keys; none for a boolean flag
}

// CohortRef is a cohort as the rules need it. Behavioural cohorts, nested ones
// included, select people by events; a flag cannot use them.
type CohortRef struct {
	Name        string
	Behavioural bool
}

// Error codes of the filters rules.
const (
	CodeInvalid    = "invalid_input"
	codeOperator   = "invalid_operator"
	codeNotForFlag = "unsupported_operator"
	codeValue      = "invalid_value"
	codeNoCohort   = "cohort_does_not_exist"
	codeBehaviour  = "behavioral_cohort_found"
)

func bad(code, format string, args ...any) error {
	return fault.Fieldf("filters", code, format, args...)
}

// CheckFilters checks filters and returns the text to store: as sent, except that
// each payload is a JSON string, aliases of operators are replaced, and cohort
// names are removed (answers add current ones). The error is the first broken
// rule, an Invalid fault on the field "filters". CheckFilters is pure and safe
// for concurrent use.
func CheckFilters(raw json.RawMessage, refs References, limits Limits) (json.RawMessage, error) {
	d, err := document.Parse(raw)
	if err != nil {
		return nil, bad("not_a_dict", "Expected a dictionary of items but got type %q.", document.KindOf(raw))
	}
	if len(raw) > limits.FiltersBytes {
		return nil, bad(CodeInvalid, "filters are %d bytes long, at most %d are allowed", len(raw), limits.FiltersBytes)
	}
	if err := checkText(raw); err != nil {
		return nil, err
	}
	c := newChecker("flag", refs, limits)
	if err := c.document(d); err != nil {
		return nil, err
	}
	if err := c.patternSum(); err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, d.Raw()); err != nil {
		return nil, bad(CodeInvalid, "filters cannot be read: %v", err)
	}
	text := bytes.ToValidUTF8(compact.Bytes(), []byte(string(utf8.RuneError)))
	if _, err := filters.Parse(text); err != nil {
		var e *filters.Error
		if !errors.As(err, &e) {
			return nil, err
		}
		return nil, fault.Field("filters", e.Code, e.Detail).Because(e.Cause)
	}
	return text, nil
}

// checker checks one filters document and rewrites it.
type checker struct {
	refs     References
	limits   Limits
	variants map[string]bool
	kind     string // flag or cohort
	patterns int64  // size of the regular expressions so far

	linksOnly bool // checks references to flags and cohorts only
}

func newChecker(kind string, refs References, limits Limits) *checker {
	limits.Patterns = limits.Patterns.WithDefaults()
	return &checker{kind: kind, refs: refs, limits: limits}
}

func (c *checker) document(d *document.Object) error {
	index, err := groupIndex(d, "")
	if err != nil {
		return err
	}
	if err := c.multivariate(d); err != nil {
		return err
	}
	if err := c.groups(d, index); err != nil {
		return err
	}
	for _, name := range []string{"super_groups", "holdout_groups"} {
		if err := c.looseGroups(d, name); err != nil {
			return err
		}
	}
	if err := c.members(d); err != nil {
		return err
	}
	return c.payloads(d)
}

// groupIndex reads aggregation_group_type_index: nil for a person.
func groupIndex(d *document.Object, path string) (*int64, error) {
	raw, ok := d.Given("aggregation_group_type_index")
	if !ok {
		return nil, nil
	}
	var i int64
	if json.Unmarshal(raw, &i) != nil {
		return nil, bad(CodeInvalid, "%saggregation_group_type_index must be an integer or null", path)
	}
	if i < 0 || i >= MaxGroupTypes {
		return nil, bad(CodeInvalid, "%saggregation_group_type_index must be between 0 and %d, got %d", path, MaxGroupTypes-1, i)
	}
	return &i, nil
}

// MaxGroupTypes is the maximum number of group types of a project.
const MaxGroupTypes = 5

// shown shortens a value for error messages.
func shown(raw json.RawMessage) string {
	const most = 80
	if len(raw) > most {
		return fmt.Sprintf("%s…", bytes.ToValidUTF8(raw[:most], nil))
	}
	return string(raw)
}

// FirstNames lists up to five of the names and counts the others.
func FirstNames(names []string) string {
	const most = 5
	slices.Sort(names)
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
