package event

// maxNesting bounds how deep a request body may nest. It protects the readers
// behind us; a single event has the much lower limit of Limits.MaxDepth.
const maxNesting = 1024

// Scanner walks JSON text strictly (RFC 8259) without building anything: its
// callers keep offsets into the text. It takes two liberties, and remembers
// them in dirty: NaN, Infinity and -Infinity count as values, and strings
// may hold what other readers cannot store (an escaped NUL, half a surrogate
// pair, bytes that are not UTF-8, bare control characters). Line breaks between values make text dirty
// too, for an event has to fit on a line. Dirty text has to pass through
// appendClean before anybody else sees it.
//
// After a syntax error bad is true, and every method returns its zero value.
type Scanner struct {
	Data    []byte
	Pos     int
	depth   int // of the value being read, inside the whole text
	Deepest int // the largest depth since the caller last set it
	Dirty   bool
	Bad     bool
	kinds   [maxNesting/64 + 1]uint64 // one bit a level: is it an object?
}

// Text is a JSON string as it stands in the source, without its quotes.
type Text struct {
	Raw     []byte
	escaped bool
}

func (s *Scanner) Reset(data []byte) {
	s.Data, s.Pos, s.depth, s.Deepest, s.Dirty, s.Bad = data, 0, 0, 0, false, false
}

func (s *Scanner) fail() { s.Bad, s.Pos = true, len(s.Data) }

// Peek skips white space and returns the next byte, or 0 at the end.
func (s *Scanner) Peek() byte {
	for s.Pos < len(s.Data) {
		c := s.Data[s.Pos]
		switch c {
		case ' ', '\t':
		case '\n', '\r':
			s.Dirty = true
		default:
			return c
		}
		s.Pos++
	}
	return 0
}

// End reports whether nothing but white space is left.
func (s *Scanner) End() bool { return s.Peek() == 0 && s.Pos == len(s.Data) && !s.Bad }

// Open steps into the object or array that starts at the cursor.
func (s *Scanner) Open() {
	s.Pos++
	s.depth++
	if s.depth > s.Deepest {
		s.Deepest = s.depth
	}
	if s.depth > maxNesting {
		s.fail()
	}
}

func (s *Scanner) close() {
	s.Pos++
	s.depth--
}

// Element moves to the next element of the array that open stepped into, and
// reports false when the array has been left. The caller reads the element.
func (s *Scanner) Element(first bool) bool {
	switch c := s.Peek(); {
	case c == ']':
		s.close()
		return false
	case first && c != 0:
		return true
	case c == ',':
		s.Pos++
		if s.Peek() != ']' {
			return true
		}
	}
	s.fail()
	return false
}

// Member moves to the value of the next member of the object that open stepped
// into, and returns its name; it reports false when the object has been left.
func (s *Scanner) Member(first bool) (name Text, ok bool) {
	c := s.Peek()
	if c == '}' && first {
		s.close()
		return Text{}, false
	}
	if !first {
		if c == '}' {
			s.close()
			return Text{}, false
		}
		if c != ',' {
			s.fail()
			return Text{}, false
		}
		s.Pos++
		c = s.Peek()
	}
	if c != '"' {
		s.fail()
		return Text{}, false
	}
	name = s.str()
	if s.Peek() != ':' {
		s.fail()
		return Text{}, false
	}
	s.Pos++
	return name, true
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
	base := s.depth
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
		s.str()
	case '{':
		s.Open()
		if s.Bad {
			return false
		}
		s.kinds[s.depth>>6] |= 1 << (s.depth & 63)
		_, opened = s.Member(true)
		return opened
	case '[':
		s.Open()
		if s.Bad {
			return false
		}
		s.kinds[s.depth>>6] &^= 1 << (s.depth & 63)
		return s.Element(true)
	case 't':
		s.word("true")
	case 'f':
		s.word("false")
	case 'n':
		s.word("null")
	case 'N':
		s.word("NaN")
		s.Dirty = true
	case 'I':
		s.word("Infinity")
		s.Dirty = true
	default:
		s.number(c)
	}
	return false
}

// leave closes the containers that end at the cursor, down to base, and
// reports whether another value follows.
func (s *Scanner) leave(base int) (more bool) {
	for s.depth > base {
		if s.kinds[s.depth>>6]&(1<<(s.depth&63)) != 0 {
			_, more = s.Member(false)
		} else {
			more = s.Element(false)
		}
		if more || s.Bad {
			return more
		}
	}
	return false
}

func (s *Scanner) word(w string) {
	if len(s.Data)-s.Pos < len(w) || string(s.Data[s.Pos:s.Pos+len(w)]) != w {
		s.fail()
		return
	}
	s.Pos += len(w)
}

func (s *Scanner) number(c byte) {
	if c == '-' {
		s.Pos++
		if s.Pos < len(s.Data) && s.Data[s.Pos] == 'I' {
			s.word("Infinity")
			s.Dirty = true
			return
		}
	}
	if s.Pos < len(s.Data) && s.Data[s.Pos] == '0' {
		s.Pos++
	} else if !s.digits() {
		return
	}
	if s.Pos < len(s.Data) && s.Data[s.Pos] == '.' {
		s.Pos++
		if !s.digits() {
			return
		}
	}
	if s.Pos < len(s.Data) && s.Data[s.Pos]|0x20 == 'e' {
		s.Pos++
		if s.Pos < len(s.Data) && (s.Data[s.Pos] == '+' || s.Data[s.Pos] == '-') {
			s.Pos++
		}
		s.digits()
	}
}

// digits moves over one or more digits; none is a syntax error.
func (s *Scanner) digits() bool {
	start := s.Pos
	for s.Pos < len(s.Data) && s.Data[s.Pos]-'0' < 10 {
		s.Pos++
	}
	if s.Pos == start {
		s.fail()
		return false
	}
	return true
}
