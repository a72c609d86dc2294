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
// error. Its many unexported methods are the steps of Skip; a second type would
// cost an indirection on the path of every request.
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

// failAt is fail with the offset of the error. It returns -1, the offset that
// stands for an error.
//
//go:noinline
func (s *Scanner) failAt(i int, reason string) int {
	s.Pos = i
	s.fail(reason)
	return -1
}

// failSeparator fails because the container that closing ends does not go on at i.
func (s *Scanner) failSeparator(i int, closing byte) {
	if closing == '}' {
		s.failAt(i, commaOrEndOfObjectExpected)
	} else {
		s.failAt(i, commaOrEndOfListExpected)
	}
}

const (
	valueExpected              = "a value was expected"
	digitExpected              = "a digit was expected"
	nameExpected               = "a name in quotes was expected"
	colonExpected              = "a colon was expected"
	commaOrEndOfObjectExpected = "a comma or the end of the object was expected"
	commaOrEndOfListExpected   = "a comma or the end of the list was expected"
)

// Peek skips white space and returns the next byte, or 0 at the end.
func (s *Scanner) Peek() (c byte) {
	if s.Pos < len(s.Data) {
		if c = s.Data[s.Pos]; c > ' ' {
			return c
		}
	}
	return s.peekSpace()
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
	s.fail(commaOrEndOfListExpected)
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
		s.fail(colonExpected)
		return String{}, false
	}
	s.Pos++
	return name, true
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
			s.fail(commaOrEndOfObjectExpected)
			return false
		}
		s.Pos++
		c = s.Peek()
	}
	if c != '"' {
		s.fail(nameExpected)
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
