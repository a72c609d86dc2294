package jsontext

import "fmt"

// MaxNesting is the largest nesting a Scanner accepts. It protects the readers
// that follow; a single event has a much lower limit.
const MaxNesting = 1024

// Scanner reads JSON text strictly (RFC 8259) and builds nothing: its callers
// keep offsets into the text. By default it accepts three things that RFC 8259
// forbids, and some that stores cannot hold, and sets Dirty: NaN, Infinity and
// -Infinity as values; bare control characters and bytes that are not UTF-8 in
// strings; an escaped NUL; half a surrogate pair. Line breaks between values set
// Dirty, too, since an event has to fit on one line. Dirty text has to pass
// through AppendClean before it is stored or handed on.
//
// A Scanner is used after Reset, which keeps the options. After a syntax error
// Bad is true, every method returns its zero value, and Problem describes the
// error.
type Scanner struct {
	Data    []byte
	Pos     int
	Depth   int // of the value being read, inside the whole text
	Deepest int // the largest Depth since the caller last set it
	Dirty   bool
	Bad     bool

	// Strict makes an error of what RFC 8259 forbids.
	Strict bool
	// KeepLines accepts line breaks between values without setting Dirty.
	KeepLines bool
	// MaxDepth bounds the nesting; 0 and more than MaxNesting are MaxNesting.
	MaxDepth int

	reason   string                    // of the syntax error
	failedAt int                       // its offset
	objects  [MaxNesting/64 + 1]uint64 // a bit for each level: is it an object?
}

// Reset starts with another text.
func (s *Scanner) Reset(data []byte) {
	s.Data, s.Pos, s.Depth, s.Deepest, s.Dirty, s.Bad, s.reason = data, 0, 0, 0, false, false, ""
	if s.MaxDepth <= 0 || s.MaxDepth > MaxNesting {
		s.MaxDepth = MaxNesting
	}
}

// Check reads the whole text, which has to be one value, and reports whether it
// is valid.
func (s *Scanner) Check() bool {
	s.Peek()
	if s.Pos == len(s.Data) {
		s.fail("there is nothing in it")
		return false
	}
	s.Skip()
	if s.Peek(); s.Pos < len(s.Data) {
		s.fail("there is more after the end")
	}
	return !s.Bad
}

// Problem describes the syntax error and its place; "" without one.
func (s *Scanner) Problem() string {
	if !s.Bad {
		return ""
	}
	return fmt.Sprintf("%s (byte %d)", s.reason, s.failedAt)
}

// fail is not inlined: it would make the functions of the hot path larger.
//
//go:noinline
func (s *Scanner) fail(reason string) {
	if s.Bad {
		return
	}
	if s.Pos >= len(s.Data) && reason == valueExpected {
		reason = "it ends in the middle"
	}
	s.Bad, s.reason, s.failedAt = true, reason, s.Pos
	s.Pos = len(s.Data) // so that nothing more is read
}

const (
	valueExpected = "a value was expected"
	digitExpected = "a digit was expected"
)

// Peek skips white space and returns the next byte, or 0 at the end.
func (s *Scanner) Peek() byte {
	for s.Pos < len(s.Data) {
		c := s.Data[s.Pos]
		switch c {
		case ' ', '\t':
		case '\n', '\r':
			s.Dirty = s.Dirty || !s.KeepLines
		default:
			return c
		}
		s.Pos++
	}
	return 0
}

// End reports whether only white space is left.
func (s *Scanner) End() bool { return s.Peek() == 0 && s.Pos == len(s.Data) && !s.Bad }

// Open steps into the object or array that starts at the cursor.
func (s *Scanner) Open() {
	s.Depth++
	if s.Depth > s.Deepest {
		s.Deepest = s.Depth
	}
	if s.Depth > s.MaxDepth {
		s.fail("it is nested too deeply")
		return
	}
	s.Pos++
}

func (s *Scanner) close() {
	s.Pos++
	s.Depth--
}

// Element moves to the next element of the array that Open stepped into. It
// returns false at the end of the array, which it leaves. The caller reads the
// element.
func (s *Scanner) Element(first bool) bool {
	switch c := s.Peek(); {
	case c == ']':
		s.close()
		return false
	case first && c != 0:
		return true
	case first:
		s.fail(valueExpected)
		return false
	case c == ',':
		s.Pos++
		if s.Peek() != ']' {
			return true
		}
		s.fail(valueExpected)
		return false
	}
	s.fail("a comma or the end of the list was expected")
	return false
}

// Member moves to the value of the next member of the object that Open stepped
// into, and returns its name. It returns false at the end of the object, which
// it leaves.
func (s *Scanner) Member(first bool) (name String, ok bool) {
	if !s.nextName(first) {
		return String{}, false
	}
	name = s.readString()
	if s.Peek() != ':' {
		s.fail("a colon was expected")
		return String{}, false
	}
	s.Pos++
	return name, true
}

// skipName is Member without the name.
func (s *Scanner) skipName(first bool) bool {
	if !s.nextName(first) {
		return false
	}
	s.skipString()
	if s.Peek() != ':' {
		s.fail("a colon was expected")
		return false
	}
	s.Pos++
	return true
}

// nextName moves to the opening quote of the next name. It returns false at the
// end of the object, which it leaves.
func (s *Scanner) nextName(first bool) bool {
	c := s.Peek()
	if c == '}' {
		s.close()
		return false
	}
	if !first {
		if c != ',' {
			s.fail("a comma or the end of the object was expected")
			return false
		}
		s.Pos++
		c = s.Peek()
	}
	if c != '"' {
		s.fail("a name in quotes was expected")
		return false
	}
	return true
}

// Value skips one value of any type and returns its text.
func (s *Scanner) Value() []byte {
	s.Peek()
	start := s.Pos
	s.Skip()
	if s.Bad {
		return nil
	}
	return s.Data[start:s.Pos]
}

// Skip moves over one value, however deep, without recursion.
func (s *Scanner) Skip() {
	base := s.Depth
	for {
		opened := s.skipOne()
		if s.Bad {
			return
		}
		if opened {
			continue
		}
		if !s.leave(base) {
			return
		}
	}
}

// skipOne moves over a scalar or an empty container, or steps into a container
// up to its first value and reports true.
func (s *Scanner) skipOne() (opened bool) {
	switch c := s.Peek(); c {
	case '"':
		s.skipString()
	case '{':
		s.Open()
		if s.Bad {
			return false
		}
		s.objects[s.Depth>>6] |= 1 << (s.Depth & 63)
		return s.skipName(true)
	case '[':
		s.Open()
		if s.Bad {
			return false
		}
		s.objects[s.Depth>>6] &^= 1 << (s.Depth & 63)
		return s.Element(true)
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	case 'N':
		s.nonFinite("NaN")
	case 'I':
		s.nonFinite("Infinity")
	default:
		s.number(c)
	}
	return false
}

// leave closes the containers that end at the cursor, down to base, and
// reports whether another value follows.
func (s *Scanner) leave(base int) (more bool) {
	for s.Depth > base {
		if s.objects[s.Depth>>6]&(1<<(s.Depth&63)) != 0 {
			more = s.skipName(false)
		} else {
			more = s.Element(false)
		}
		if more || s.Bad {
			return more
		}
	}
	return false
}

func (s *Scanner) literal(word string) {
	if len(s.Data)-s.Pos < len(word) || string(s.Data[s.Pos:s.Pos+len(word)]) != word {
		s.fail(valueExpected)
		return
	}
	s.Pos += len(word)
}

// nonFinite moves over a number that JSON does not have and some writers use.
func (s *Scanner) nonFinite(word string) {
	if s.Strict {
		s.fail(valueExpected)
		return
	}
	s.literal(word)
	s.Dirty = true
}

// number moves over a number that starts with c.
func (s *Scanner) number(c byte) {
	problem := valueExpected
	if c == '-' {
		problem = digitExpected
		s.Pos++
		if s.Pos < len(s.Data) && s.Data[s.Pos] == 'I' {
			s.nonFinite("Infinity")
			return
		}
	}
	if s.Pos < len(s.Data) && s.Data[s.Pos] == '0' {
		s.Pos++
	} else if !s.digits(problem) {
		return
	}
	if s.Pos < len(s.Data) && s.Data[s.Pos] == '.' {
		s.Pos++
		if !s.digits(digitExpected) {
			return
		}
	}
	if s.Pos < len(s.Data) && s.Data[s.Pos]|0x20 == 'e' {
		s.Pos++
		if s.Pos < len(s.Data) && (s.Data[s.Pos] == '+' || s.Data[s.Pos] == '-') {
			s.Pos++
		}
		s.digits(digitExpected)
	}
}

// digits moves over one or more digits; none is a problem.
func (s *Scanner) digits(problem string) bool {
	start := s.Pos
	for s.Pos < len(s.Data) && s.Data[s.Pos]-'0' < 10 {
		s.Pos++
	}
	if s.Pos == start {
		s.fail(problem)
		return false
	}
	return true
}
