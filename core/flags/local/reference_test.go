package local_test

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reference evaluates a document for local evaluation as the newest client libraries
// do: it reads the document only, and leaves a flag undecided where the libraries ask
// the server. It shares no code with the evaluator.
type reference struct {
	flags   map[string]referenceFlag
	cohorts map[string]any
	groups  map[string]string // group types by index
	now     time.Time
}

type referenceFlag struct {
	Key                  string         `json:"key"`
	Filters              map[string]any `json:"filters"`
	Active               bool           `json:"active"`
	ExperienceContinuity bool           `json:"ensure_experience_continuity"`
	Bucketing            string         `json:"bucketing_identifier"`
}

// clientRequest is a person with all that a client sends.
type clientRequest struct {
	id, device      string
	properties      map[string]any
	groups          map[string]string
	groupProperties map[string]map[string]any
}

// undecided is panicked with where a library asks the server.
type undecided struct{}

func newReference(document []byte, now time.Time) (*reference, error) {
	var doc struct {
		Flags   []referenceFlag   `json:"flags"`
		Groups  map[string]string `json:"group_type_mapping"`
		Cohorts map[string]any    `json:"cohorts"`
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	r := &reference{flags: map[string]referenceFlag{}, cohorts: doc.Cohorts, groups: doc.Groups, now: now}
	for _, f := range doc.Flags {
		r.flags[f.Key] = f
	}
	return r, nil
}

// value returns the value of a flag, and whether the client decides it.
func (r *reference) value(key string, a *clientRequest) (value any, decided bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(undecided); !ok {
				panic(p)
			}
			value, decided = nil, false
		}
	}()
	return r.decide(r.flags[key], a), true
}

func (r *reference) decide(f referenceFlag, a *clientRequest) any {
	if !f.Active {
		return false
	}
	if f.ExperienceContinuity {
		panic(undecided{})
	}
	if index, ok := f.Filters["aggregation_group_type_index"].(float64); ok {
		group := r.groups[fmt.Sprint(index)]
		if group == "" {
			panic(undecided{})
		}
		key, given := a.groups[group]
		if !given {
			return false
		}
		return r.conditions(f, a, key, a.groupProperties[group], index)
	}
	id := a.id
	if f.Bucketing == "device_id" {
		if id = a.device; id == "" {
			panic(undecided{})
		}
	}
	return r.conditions(f, a, id, a.properties, nil)
}

func (r *reference) conditions(f referenceFlag, a *clientRequest, id string, properties map[string]any, index any) any {
	if h, ok := f.Filters["holdout"].(map[string]any); ok {
		share, isNumber := h["exclusion_percentage"].(float64)
		if isNumber && h["id"] != nil && (share >= 100 || share1("holdout-"+id) <= share/100) {
			return "holdout-" + fmt.Sprint(h["id"])
		}
	}
	open := false
	for _, item := range items(f.Filters["groups"]) {
		set := item.(map[string]any)
		setID, setProperties := id, properties
		if own, given := set["aggregation_group_type_index"]; given && own != index && own != nil {
			group := r.groups[fmt.Sprint(own)]
			key, belongs := a.groups[group]
			if group == "" || !belongs {
				continue
			}
			setID, setProperties = key, a.groupProperties[group]
		}
		switch r.matches(f, a, set, setID, setProperties) {
		case "match":
			if open {
				panic(undecided{}) // it leaves more open than the libraries do
			}
			return r.variant(f, set, setID)
		case "out":
			if f.Filters["early_exit"] == true {
				if open {
					panic(undecided{})
				}
				return false
			}
		case "open":
			open = true
		}
	}
	if open {
		panic(undecided{})
	}
	return false
}

func (r *reference) matches(f referenceFlag, a *clientRequest, set map[string]any, id string, properties map[string]any) string {
	open := false
	for _, item := range items(set["properties"]) {
		switch r.try(func() bool { return r.property(item.(map[string]any), a, properties) }) {
		case "false":
			return "no"
		case "open":
			open = true
		}
	}
	rollout, limited := set["rollout_percentage"].(float64)
	switch {
	case open:
		return "open"
	case limited && share1(f.Key+"."+id) > rollout/100:
		return "out"
	}
	return "match"
}

// try returns the result of fn, or open if it cannot be decided.
func (r *reference) try(fn func() bool) (result string) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(undecided); !ok {
				panic(p)
			}
			result = "open"
		}
	}()
	return strconv.FormatBool(fn())
}

func (r *reference) variant(f referenceFlag, set map[string]any, id string) any {
	m, _ := f.Filters["multivariate"].(map[string]any)
	variants := items(m["variants"])
	for _, v := range variants {
		if name := v.(map[string]any)["key"]; name == set["variant"] {
			return name
		}
	}
	hash, from := share1(f.Key+"."+id+"variant"), 0.0
	for _, v := range variants {
		to := from + v.(map[string]any)["rollout_percentage"].(float64)/100
		if hash >= from && hash < to {
			return v.(map[string]any)["key"]
		}
		from = to
	}
	return true
}

// share1 returns the position of a text between 0 and 1.
func share1(text string) float64 {
	sum := sha1.Sum([]byte(text))
	n, _ := strconv.ParseUint(hex.EncodeToString(sum[:])[:15], 16, 64)
	return float64(n) / float64(0xfffffffffffffff)
}

func (r *reference) property(p map[string]any, a *clientRequest, properties map[string]any) bool {
	switch p["type"] {
	case "cohort":
		tree, known := r.cohorts[text(p["value"])]
		if !known {
			panic(undecided{})
		}
		return r.cohort(tree.(map[string]any), a, properties) != (p["operator"] == "not_in")
	case "flag":
		return r.dependency(p, a)
	}
	v, given := properties[p["key"].(string)]
	if !given {
		panic(undecided{})
	}
	operator, _ := p["operator"].(string)
	return r.compare(operator, p["value"], v)
}

func (r *reference) dependency(p map[string]any, a *clientRequest) bool {
	chain := items(p["dependency_chain"])
	if len(chain) == 0 {
		panic(undecided{})
	}
	var value any
	for _, key := range chain {
		value = r.decide(r.flags[key.(string)], a)
	}
	if want, isText := p["value"].(string); isText {
		return value == want
	}
	return (value != false) == (p["value"] == true)
}

func (r *reference) cohort(tree map[string]any, a *clientRequest, properties map[string]any) bool {
	if len(tree) == 0 {
		return true
	}
	all := tree["type"] == "AND"
	open := false
	for _, item := range items(tree["values"]) {
		node := item.(map[string]any)
		result := r.try(func() bool {
			if _, group := node["values"]; group {
				return r.cohort(node, a, properties)
			}
			return r.property(node, a, properties) != (node["negation"] == true)
		})
		if result == strconv.FormatBool(!all) {
			return !all
		}
		open = open || result == "open"
	}
	if open {
		panic(undecided{})
	}
	return all
}

func (r *reference) compare(operator string, want, v any) bool {
	if name, negated := strings.CutPrefix(operator, "not_"); negated && name != "regex" {
		return !r.compare(name, want, v)
	}
	switch operator {
	case "is_set":
		return true
	case "is_not_set":
		return false
	case "", "exact":
		return equal(want, v)
	case "is_not":
		return !equal(want, v)
	case "icontains":
		return strings.Contains(lower(text(v)), lower(text(want)))
	case "starts_with":
		return strings.HasPrefix(lower(text(v)), lower(text(want)))
	case "ends_with":
		return strings.HasSuffix(lower(text(v)), lower(text(want)))
	case "regex", "not_regex":
		return search(text(want), text(v), operator == "regex")
	case "gt", "gte", "lt", "lte":
		return v != nil && order(operator, v, want)
	case "is_date_before", "is_date_after":
		return v != nil && r.date(operator, want, v)
	}
	if strings.HasPrefix(operator, "semver_") {
		return v != nil && version(operator, text(want), text(v))
	}
	panic(undecided{})
}

func equal(want, v any) bool {
	if list, ok := want.([]any); ok {
		return slices.ContainsFunc(list, func(one any) bool { return equal(one, v) }) || len(list) == 0 && (v == true || lower(text(v)) == "true")
	}
	for _, side := range []any{want, v} {
		switch side := side.(type) {
		case float64:
			if side == math.Trunc(side) {
				panic(undecided{}) // 1 may have been 1.0
			}
		case []any, map[string]any:
			panic(undecided{}) // the libraries differ
		}
	}
	return strings.EqualFold(text(want), text(v))
}

func search(pattern, s string, found bool) bool {
	if strings.ContainsFunc(pattern+s, func(r rune) bool { return r > 127 }) {
		panic(undecided{})
	}
	re, err := regexp.Compile(pattern)
	return err == nil && re.MatchString(s) == found
}

var number = regexp.MustCompile(`^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?`)

func order(operator string, v, want any) bool {
	for _, side := range []any{v, want} {
		switch side.(type) {
		case []any, map[string]any:
			panic(undecided{})
		}
	}
	c := strings.Compare(text(v), text(want))
	if a, b := number.FindString(text(v)), number.FindString(text(want)); a != "" && b != "" {
		x, _ := strconv.ParseFloat(strings.TrimSpace(a), 64)
		y, _ := strconv.ParseFloat(strings.TrimSpace(b), 64)
		c = map[bool]int{true: 1}[x > y] - map[bool]int{true: 1}[x < y]
	}
	return map[string]bool{"gt": c > 0, "gte": c >= 0, "lt": c < 0, "lte": c <= 0}[operator]
}

// date compares instants. It knows RFC 3339 and days only: the document has no other
// dates in filters.
func (r *reference) date(operator string, want, v any) bool {
	than, ok := r.ago(text(want))
	if !ok {
		than, ok = instant(text(want))
	}
	at, known := instant(text(v))
	if !ok || !known {
		panic(undecided{})
	}
	if operator == "is_date_before" {
		return at.Before(than)
	}
	return at.After(than)
}

var agoText = regexp.MustCompile(`^-?(\d{1,4})([hdwmy])$`)

func (r *reference) ago(s string) (time.Time, bool) {
	m := agoText.FindStringSubmatch(s)
	if m == nil {
		return time.Time{}, false
	}
	n, _ := strconv.Atoi(m[1])
	switch m[2] {
	case "h":
		return r.now.Add(-time.Duration(n) * time.Hour), true
	case "d":
		return r.now.AddDate(0, 0, -n), true
	case "w":
		return r.now.AddDate(0, 0, -7*n), true
	case "y":
		return r.now.AddDate(-n, 0, 0), true
	}
	panic(undecided{}) // months clamp; not needed here
}

func instant(s string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func version(operator, want, v string) bool {
	a, b := parts(v), parts(want)
	upper := b
	switch operator {
	case "semver_tilde":
		upper = [3]int{b[0], b[1] + 1}
	case "semver_caret":
		switch {
		case b[0] > 0:
			upper = [3]int{b[0] + 1}
		case b[1] > 0:
			upper = [3]int{0, b[1] + 1}
		default:
			upper = [3]int{0, 0, b[2] + 1}
		}
	default:
		c := slices.Compare(a[:], b[:])
		return map[string]bool{"semver_eq": c == 0, "semver_neq": c != 0, "semver_gt": c > 0, "semver_gte": c >= 0, "semver_lt": c < 0, "semver_lte": c <= 0}[operator]
	}
	return slices.Compare(a[:], b[:]) >= 0 && slices.Compare(a[:], upper[:]) < 0
}

func parts(s string) (out [3]int) {
	s = strings.TrimLeft(strings.TrimSpace(s), "vV")
	s, _, _ = strings.Cut(s, "-")
	for i, part := range strings.Split(s, ".") {
		if i > 2 {
			break
		}
		n, err := strconv.Atoi(part)
		if err != nil {
			panic(undecided{})
		}
		out[i] = n
	}
	return out
}

func items(v any) []any {
	list, _ := v.([]any)
	return list
}

// text returns the text of a value as JavaScript has it.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return v
	case []any, map[string]any:
		panic(undecided{})
	}
	return fmt.Sprint(v)
}

// lower lower-cases ASCII letters.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
