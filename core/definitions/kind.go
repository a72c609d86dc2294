package definitions

import (
	"strconv"
	"strings"
	"time"
)

// The types a property can have.
const (
	String   = "String"
	Numeric  = "Numeric"
	Boolean  = "Boolean"
	DateTime = "DateTime"
)

func isType(s string) bool {
	return s == String || s == Numeric || s == Boolean || s == DateTime
}

// typeOf is the type of a property with this name and JSON value; empty for
// values without a type (null, lists, objects).
func typeOf(name, value string) string {
	if len(value) == 0 {
		return ""
	}
	switch c := value[0]; {
	case c == '{' || c == '[' || c == 'n':
		return ""
	case isTextProperty(name):
		return String
	case c == 't' || c == 'f':
		return Boolean
	case c == '"':
		return typeOfText(strings.TrimSpace(value[1 : len(value)-1]))
	}
	if n, err := strconv.ParseFloat(value, 64); err == nil && hasTimeWord(name) && isUnixTime(n) {
		return DateTime
	}
	return Numeric
}

// isTextProperty reports names whose values are texts even if they look like
// numbers or dates: campaigns and the answers of flags and surveys.
func isTextProperty(name string) bool {
	return strings.HasPrefix(name, "utm_") || strings.HasPrefix(name, "$initial_utm_") || strings.HasPrefix(name, "$feature/") ||
		name == "$feature_flag_response" || strings.HasPrefix(name, "$survey_response")
}

func typeOfText(s string) string {
	if strings.EqualFold(s, "true") || strings.EqualFold(s, "false") {
		return Boolean
	}
	if isDate(s) {
		return DateTime
	}
	return String
}

// isDate reports whether s starts with a date and continues, if at all, with a
// time of day.
func isDate(s string) bool {
	if len(s) < len(time.DateOnly) || len(s) > 40 {
		return false
	}
	day, rest := s[:len(time.DateOnly)], s[len(time.DateOnly):]
	if _, err := time.Parse(time.DateOnly, strings.ReplaceAll(day, "/", "-")); err != nil {
		if _, err := time.Parse("02-01-2006", strings.ReplaceAll(day, "/", "-")); err != nil {
			return false
		}
	}
	if rest == "" {
		return true
	}
	if len(rest) < len("T00:00") || rest[0] != 'T' && rest[0] != ' ' {
		return false
	}
	_, err := time.Parse("15:04", rest[1:6])
	return err == nil
}

// timeWords occur in the names of properties that hold a time.
var timeWords = [...]string{"time", "date", "_at", "-at", "createdat", "updatedat"}

func hasTimeWord(name string) bool {
	name = strings.ToLower(name)
	for _, w := range timeWords {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}

// isUnixTime reports whether n is a time of this century, in seconds or
// milliseconds since 1970.
func isUnixTime(n float64) bool {
	const from, to = 946684800, 4102444800 // 2000 to 2100
	return n >= from && n < to || n >= from*1000 && n < to*1000
}
