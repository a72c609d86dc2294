package ingestion

// maxNesting bounds how deep a request body may nest. It protects the readers
// behind us; a single event has the much lower limit of Limits.MaxDepth.
const maxNesting = 1024

// scanner walks JSON text strictly (RFC 8259) without building anything: its
// callers keep offsets into the text. It takes two liberties, and remembers
// them in dirty: NaN, Infinity and -Infinity count as values, and strings
// may hold what other readers cannot store (an escaped NUL, half a surrogate
// pair, bytes that are not UTF-8, bare control characters). Line breaks between values make text dirty
// too, for an event has to fit on a line. Dirty text has to pass through
// appendClean before anybody else sees it.
//
// After a syntax error bad is true, and every method returns its zero value.
type scanner struct {
	data    []byte
	pos     int
	depth   int // of the value being read, inside the whole text
	deepest int // the largest depth since the caller last set it
	dirty   bool
	bad     bool
	kinds   [maxNesting/64 + 1]uint64 // one bit a level: is it an object?
}

// text is a JSON string as it stands in the source, without its quotes.
type text struct {
	raw     []byte
	escaped bool
}

func (s *scanner) reset(data []byte) {
	s.data, s.pos, s.depth, s.deepest, s.dirty, s.bad = data, 0, 0, 0, false, false
}

func (s *scanner) fail() { s.bad, s.pos = true, len(s.data) }

// peek skips white space and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		switch c {
		case ' ', '\t':
		case '\n', '\r':
			s.dirty = true
		default:
			return c
		}
		s.pos++
	}
	return 0
}

// end reports whether nothing but white space is left.
func (s *scanner) end() bool { return s.peek() == 0 && s.pos == len(s.data) && !s.bad }

// open steps into the object or array that starts at the cursor.
func (s *scanner) open() {
	s.pos++
	s.depth++
	if s.depth > s.deepest {
		s.deepest = s.depth
	}
	if s.depth > maxNesting {
		s.fail()
	}
}

func (s *scanner) close() {
	s.pos++
	s.depth--
}

// element moves to the next element of the array that open stepped into, and
// reports false when the array has been left. The caller reads the element.
func (s *scanner) element(first bool) bool {
	switch c := s.peek(); {
	case c == ']':
		s.close()
		return false
	case first && c != 0:
		return true
	case c == ',':
		s.pos++
		if s.peek() != ']' {
			return true
		}
	}
	s.fail()
	return false
}

// member moves to the value of the next member of the object that open stepped
// into, and returns its name; it reports false when the object has been left.
func (s *scanner) member(first bool) (name text, ok bool) {
	c := s.peek()
	if c == '}' && first {
		s.close()
		return text{}, false
	}
	if !first {
		if c == '}' {
			s.close()
			return text{}, false
		}
		if c != ',' {
			s.fail()
			return text{}, false
		}
		s.pos++
		c = s.peek()
	}
	if c != '"' {
		s.fail()
		return text{}, false
	}
	name = s.str()
	if s.peek() != ':' {
		s.fail()
		return text{}, false
	}
	s.pos++
	return name, true
}

// value skips one value of any type and returns its text.
func (s *scanner) value() []byte {
	s.peek()
	start := s.pos
	s.skip()
	if s.bad {
		return nil
	}
	return s.data[start:s.pos]
}

// skip moves over one value, however deep, without recursion.
func (s *scanner) skip() {
	base := s.depth
	for {
		opened := s.skipOne()
		if s.bad {
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
func (s *scanner) skipOne() (opened bool) {
	switch c := s.peek(); c {
	case '"':
		s.str()
	case '{':
		s.open()
		if s.bad {
			return false
		}
		s.kinds[s.depth>>6] |= 1 << (s.depth & 63)
		_, opened = s.member(true)
		return opened
	case '[':
		s.open()
		if s.bad {
			return false
		}
		s.kinds[s.depth>>6] &^= 1 << (s.depth & 63)
		return s.element(true)
	case 't':
		s.word("true")
	case 'f':
		s.word("false")
	case 'n':
		s.word("null")
	case 'N':
		s.word("NaN")
		s.dirty = true
	case 'I':
		s.word("Infinity")
		s.dirty = true
	default:
		s.number(c)
	}
	return false
}

// leave closes the containers that end at the cursor, down to base, and
// reports whether another value follows.
func (s *scanner) leave(base int) (more bool) {
	for s.depth > base {
		if s.kinds[s.depth>>6]&(1<<(s.depth&63)) != 0 {
			_, more = s.member(false)
		} else {
			more = s.element(false)
		}
		if more || s.bad {
			return more
		}
	}
	return false
}

func (s *scanner) word(w string) {
	if len(s.data)-s.pos < len(w) || string(s.data[s.pos:s.pos+len(w)]) != w {
		s.fail()
		return
	}
	s.pos += len(w)
}

func (s *scanner) number(c byte) {
	if c == '-' {
		s.pos++
		if s.pos < len(s.data) && s.data[s.pos] == 'I' {
			s.word("Infinity")
			s.dirty = true
			return
		}
	}
	if s.pos < len(s.data) && s.data[s.pos] == '0' {
		s.pos++
	} else if !s.digits() {
		return
	}
	if s.pos < len(s.data) && s.data[s.pos] == '.' {
		s.pos++
		if !s.digits() {
			return
		}
	}
	if s.pos < len(s.data) && s.data[s.pos]|0x20 == 'e' {
		s.pos++
		if s.pos < len(s.data) && (s.data[s.pos] == '+' || s.data[s.pos] == '-') {
			s.pos++
		}
		s.digits()
	}
}

// digits moves over one or more digits; none is a syntax error.
func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos]-'0' < 10 {
		s.pos++
	}
	if s.pos == start {
		s.fail()
		return false
	}
	return true
}
