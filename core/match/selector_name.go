package match

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// inName reports whether a byte can occur in a name without an escape.
func inName(c byte) bool {
	return alphanumeric(c) || c == '-' || c == '_' || c >= utf8.RuneSelf
}

func (r *selectorReader) nameAhead() bool {
	return !r.end() && (inName(r.peek()) || r.peek() == '\\')
}

// name reads a name. The name of a class may also contain, without the backslash
// that CSS requires, the characters of utility classes: / ! @ % & anywhere, a dot
// before a digit, and text in square brackets after a dash, a colon, a slash or
// an exclamation mark (max-w-[12px]), unless it is an attribute condition.
func (r *selectorReader) name(class bool) (string, error) {
	var name []byte
	for !r.end() {
		c := r.peek()
		switch {
		case inName(c), class && strings.IndexByte("/!@%&", c) >= 0:
			name = append(name, c)
			r.pos++
		case c == '\\':
			char, err := r.escaped()
			if err != nil {
				return "", err
			}
			name = utf8.AppendRune(name, char)
		case class && c == '.' && len(name) > 0 && r.pos+1 < len(r.text) && r.text[r.pos+1]-'0' < 10:
			name = append(name, c)
			r.pos++
		case class && c == '[' && arbitrary(name) && !r.attributeAhead():
			length := strings.IndexByte(r.text[r.pos:], ']') + 1
			if length == 0 || strings.ContainsAny(r.text[r.pos:r.pos+length], " \t\n\f\r") {
				return "", r.refuse(r.pos, "the bracket is never closed")
			}
			name = append(name, r.text[r.pos:r.pos+length]...)
			r.pos += length
		default:
			if len(name) == 0 {
				return "", r.unexpected()
			}
			return string(name), nil
		}
	}
	if len(name) == 0 {
		return "", r.unexpected()
	}
	return string(name), nil
}

// arbitrary reports whether square brackets after the name belong to it.
func arbitrary(name []byte) bool {
	return len(name) == 0 || strings.IndexByte("-:/!", name[len(name)-1]) >= 0
}

// attributeAhead reports whether the bracket at the cursor opens a comparison
// with a quoted value.
func (r *selectorReader) attributeAhead() bool {
	ahead := selectorReader{text: r.text, pos: r.pos + 1}
	ahead.space()
	if _, err := ahead.name(false); err != nil {
		return false
	}
	ahead.space()
	if strings.IndexByte("^*$", ahead.peek()) >= 0 {
		ahead.pos++
	}
	if ahead.peek() != '=' {
		return false
	}
	ahead.pos++
	ahead.space()
	return ahead.peek() == '"' || ahead.peek() == '\''
}

// operand reads a value: a name, or text in single or double quotes.
func (r *selectorReader) operand() (string, error) {
	quote := r.peek()
	if quote != '"' && quote != '\'' {
		return r.name(false)
	}
	start := r.pos
	r.pos++
	var value []byte
	for !r.end() {
		switch c := r.peek(); c {
		case quote:
			r.pos++
			return string(value), nil
		case '\\':
			char, err := r.escaped()
			if err != nil {
				return "", err
			}
			value = utf8.AppendRune(value, char)
		default:
			value = append(value, c)
			r.pos++
		}
	}
	return "", r.refuse(start, "the quote is never closed")
}

// escaped reads an escape: a backslash and up to six hexadecimal digits of a code
// point, with optional white space after them, or a literal character.
func (r *selectorReader) escaped() (rune, error) {
	start := r.pos
	r.pos++
	if r.end() {
		return 0, r.refuse(start, "nothing comes after the backslash")
	}
	from := r.pos
	for r.pos < len(r.text) && r.pos-from < 6 && hexadecimal(r.text[r.pos]) {
		r.pos++
	}
	if r.pos == from {
		char, n := utf8.DecodeRuneInString(r.text[r.pos:])
		r.pos += n
		return char, nil
	}
	code, _ := strconv.ParseUint(r.text[from:r.pos], 16, 32)
	if !r.end() && white(r.peek()) {
		r.pos++
	}
	if char := rune(code); char > 0 && utf8.ValidRune(char) {
		return char, nil
	}
	return utf8.RuneError, nil
}

func hexadecimal(c byte) bool { return c-'0' < 10 || c|0x20-'a' < 6 }
