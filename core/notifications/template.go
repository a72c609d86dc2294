package notifications

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/text"
)

// DefaultFormat is the format of actions without one.
const DefaultFormat = "[action.name] was triggered by [person]"

// maxTokens bounds a format.
const maxTokens = 100

// Template is a parsed format: texts, and tokens in square brackets that stand
// for parts of the event, such as [action.name], [person],
// [event.properties.a.b] and [groups.company]; \[ and \] are literal brackets.
// It is immutable and safe for concurrent use.
type Template struct {
	source string
	parts  []part
}

// part is a text, or a token as its words.
type part struct {
	text  string
	words []string
}

// ParseTemplate parses a format; "" is DefaultFormat. An unknown token is an
// Invalid fault with its column, counted from 1 in characters.
func ParseTemplate(format string) (*Template, error) {
	if strings.TrimSpace(format) == "" {
		format = DefaultFormat
	}
	t := &Template{source: format}
	var literal strings.Builder
	runes := []rune(format)
	flush := func() {
		if literal.Len() > 0 {
			t.parts = append(t.parts, part{text: literal.String()})
			literal.Reset()
		}
	}
	for i := 0; i < len(runes); i++ {
		switch {
		case runes[i] == '\\' && i+1 < len(runes) && (runes[i+1] == '[' || runes[i+1] == ']'):
			i++
			literal.WriteRune(runes[i])
		case runes[i] == '[':
			end := closing(runes, i)
			if end < 0 {
				return nil, wrong(i, `there is no ] to this [ (write \[ for a bracket)`)
			}
			flush()
			words, err := token(string(runes[i+1:end]), i)
			if err != nil {
				return nil, err
			}
			t.parts = append(t.parts, part{words: words})
			i = end
		case runes[i] == ']':
			return nil, wrong(i, `there is no [ to this ] (write \] for a bracket)`)
		default:
			literal.WriteRune(runes[i])
		}
	}
	flush()
	if len(t.parts) > maxTokens {
		return nil, wrong(0, fmt.Sprintf("a format has at most %d parts", maxTokens))
	}
	return t, nil
}

// closing finds the ] of a [. It returns -1 if another [ or the end comes
// first.
func closing(runes []rune, open int) int {
	for i := open + 1; i < len(runes); i++ {
		switch runes[i] {
		case '\\':
			i++
		case ']':
			return i
		case '[':
			return -1
		}
	}
	return -1
}

func wrong(column int, why string) error {
	return fault.Field("chat_message_format", "invalid_template", fmt.Sprintf("Column %d: %s.", column+1, why))
}

// rest are the words that may follow a first word; nil allows any.
var rest = map[string][]string{
	"action": {"name", "link"}, "source": {"name", "link"}, "person": nil, "user": nil, "event": nil, "groups": nil,
}

// known are the second words of the tokens that have a list of them.
var known = map[string][]string{
	"person": {"link", "properties", "name"},
	"user":   {"name", "browser"},
	"event":  {"link", "uuid", "event", "name", "timestamp", "distinct_id", "properties"},
}

// token parses the text between brackets.
func token(inside string, column int) ([]string, error) {
	words := strings.Split(inside, ".")
	for i := range words {
		words[i] = strings.TrimSpace(unescape.Replace(words[i]))
	}
	first := words[0]
	if _, ok := rest[first]; !ok {
		return nil, wrong(column, fmt.Sprintf("[%s] is not known; a token begins with action, person, event, groups or user", text.EllipsisChars(inside, 40)))
	}
	second := ""
	if len(words) > 1 {
		second = words[1]
	}
	list := rest[first]
	if list == nil {
		list = known[first]
	}
	for _, w := range words {
		if w == "" {
			return nil, wrong(column, fmt.Sprintf("[%s] has an empty word", text.EllipsisChars(inside, 40)))
		}
	}
	unknown := func(what string) error {
		return wrong(column, fmt.Sprintf("[%s] is not known; %s", text.EllipsisChars(inside, 40), what))
	}
	path := 2 // how many words there may be
	switch {
	case first == "groups":
		if len(words) > 2 && words[2] != "link" && words[2] != "properties" {
			return nil, unknown("after a group comes link or properties")
		}
		if path = 3; len(words) > 2 && words[2] == "properties" {
			if path = len(words); len(words) < 4 {
				return nil, wrong(column, fmt.Sprintf("[%s] names no property", text.EllipsisChars(inside, 40)))
			}
		}
	case second == "" && (first == "person" || first == "event"):
	case len(list) > 0 && !slices.Contains(list, second):
		return nil, unknown("after " + first + " comes " + strings.Join(list, ", "))
	case second == "properties":
		if path = len(words); len(words) < 3 {
			return nil, wrong(column, fmt.Sprintf("[%s] names no property", text.EllipsisChars(inside, 40)))
		}
	}
	if len(words) > path {
		return nil, unknown("nothing comes after " + strings.Join(words[:path], "."))
	}
	return words, nil
}

var unescape = strings.NewReplacer(`\[`, "[", `\]`, "]")
