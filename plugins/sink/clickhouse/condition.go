package clickhouse

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/sdk"
)

// text is a string of SQL.
func text(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\x00", `\0`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s) + "'"
}

// fields are what can be compared; operators is how.
var (
	fields    = []string{"event", "distinct_id", "elements_chain", "properties.*"}
	operators = []string{
		"exact", "is_not", "is_set", "is_not_set", "icontains", "not_icontains",
		"starts_with", "not_starts_with", "ends_with", "not_ends_with", "regex", "not_regex",
	}
)

// operand is the left side of a comparison: an expression for its text, and one
// for whether it is there.
type operand struct{ value, there string }

// find returns the left side, or false for one that cannot be compared.
func find(field string) (operand, bool) {
	switch field {
	case "event", "distinct_id", "elements_chain":
		return operand{field, "1"}, true
	}
	name, ok := strings.CutPrefix(field, "properties.")
	if !ok || name == "" {
		return operand{}, false
	}
	at := "indexOf(property_names, " + text(name) + ")"
	if name == "$current_url" {
		return operand{"current_url", at + " > 0"}, true
	}
	return operand{"property_values[" + at + "]", at + " > 0"}, true
}

// condition returns a predicate in SQL, or false for an unsupported one. What
// is not there passes the negated operators only.
func condition(p sdk.Predicate) (string, bool) {
	if p.Operator == "" {
		p.Operator = "exact"
	}
	o, ok := find(p.Field)
	if !ok || !slices.Contains(operators, p.Operator) {
		return "", false
	}
	switch p.Operator {
	case "is_set":
		return o.there, true
	case "is_not_set":
		return "NOT (" + o.there + ")", true
	}
	operator, negated := strings.CutPrefix(p.Operator, "not_")
	if p.Operator == "is_not" {
		operator, negated = "exact", true
	}
	test, ok := comparison(operator, o.value, p.Value)
	switch {
	case !ok:
		return "", false
	case negated && test == never: // a pattern that cannot be read passes nothing that is there
		return "NOT (" + o.there + ")", true
	case negated:
		return "NOT (" + o.there + " AND " + test + ")", true
	case o.value == "current_url" && operator == "exact" && !strings.Contains(test, "''"):
		return "(" + test + ")", true // matches existing properties only
	}
	return "(" + o.there + " AND " + test + ")", true
}

// The tests that nothing and that everything passes.
const never, always = "0", "1"

// comparison returns the SQL of a text operator.
func comparison(operator, value string, raw json.RawMessage) (string, bool) {
	if operator == "exact" {
		return equality(value, raw)
	}
	needle, ok := scalar(raw)
	if !ok {
		return "", false
	}
	low := lowerASCII(needle)
	if needle == "" && operator != "regex" {
		return always, true
	}
	switch operator {
	case "icontains":
		return fmt.Sprintf("position(lower(%s), %s) > 0", value, text(low)), true
	case "starts_with":
		return fmt.Sprintf("substring(lower(%s), 1, %d) = %s", value, len(low), text(low)), true
	case "ends_with":
		return fmt.Sprintf("(length(%[1]s) >= %[2]d AND substring(lower(%[1]s), length(%[1]s) - %[2]d + 1, %[2]d) = %[3]s)", value, len(low), text(low)), true
	case "regex":
		if _, err := regexp.Compile(needle); err != nil {
			return never, true
		}
		// In ClickHouse a dot matches a line break, too, unless the flag is set.
		return fmt.Sprintf("match(%s, %s)", value, text("(?-s)"+needle)), true
	}
	return "", false
}

// equality compares with one text or any of several, case not counting.
func equality(value string, raw json.RawMessage) (string, bool) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		items = []json.RawMessage{raw}
	}
	list := make([]string, len(items))
	for i, item := range items {
		s, ok := scalar(item)
		if !ok {
			return "", false
		}
		list[i] = text(strings.ToLower(s))
	}
	if len(list) == 0 {
		return "", false // is a comparison with a boolean
	}
	return "lowerUTF8(" + value + ") IN (" + strings.Join(list, ", ") + ")", true
}

// scalar is the text of a string, a number, true or false.
func scalar(raw json.RawMessage) (string, bool) {
	var s string
	if json.Unmarshal(raw, &s) == nil && string(raw) != "null" {
		return s, true
	}
	trimmed := strings.TrimSpace(string(raw))
	if !json.Valid(raw) || trimmed == "null" || strings.HasPrefix(trimmed, "[") || strings.HasPrefix(trimmed, "{") {
		return "", false
	}
	return trimmed, true
}

// lowerASCII lower-cases A to Z and nothing else, as ClickHouse's lower does.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
