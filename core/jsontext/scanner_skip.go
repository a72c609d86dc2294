package jsontext

// Skip moves over one value, however deep, without recursion. Most bytes of most
// requests pass through here, so the offset and the bounds stay in registers:
// the functions below take an offset and return the next one, -1 after a syntax
// error.
func (s *Scanner) Skip() {
	data, i, base := s.Data, s.Pos, s.Depth
	var c, closing byte // closing ends the innermost container
	for {
		switch i, c = s.next(data, i); c {
		case '"':
			if i = indexSpecial(data, i+1); i < len(data) && data[i] == '"' {
				i++
			} else {
				i = s.skipRest(i)
			}
		case '{', '[':
			if i = s.openAt(i, c); i < 0 {
				return
			}
			closing = c + 2 // in ASCII for both kinds
			if i, c = s.next(data, i); c == closing {
				break
			}
			if closing == '}' {
				if i = s.skipName(i, c); i < 0 {
					return
				}
			}
			continue
		default:
			i = s.skipScalar(i, c)
		}
		if i < 0 {
			return
		}
		for {
			if s.Depth == base {
				s.Pos = i
				return
			}
			if i, c = s.next(data, i); c != closing {
				break
			}
			i++
			s.Depth--
			closing = s.closing()
		}
		if c != ',' {
			s.failSeparator(i, closing)
			return
		}
		i++
		if closing == '}' {
			i, c = s.next(data, i)
			if i = s.skipName(i, c); i < 0 {
				return
			}
		}
	}
}

// next is Peek for an offset.
func (s *Scanner) next(data []byte, i int) (next int, c byte) {
	if i < len(data) && data[i] > ' ' {
		return i, data[i]
	}
	return s.skipSpace(i)
}

func (s *Scanner) peekSpace() (c byte) {
	s.Pos, c = s.skipSpace(s.Pos)
	return c
}

func (s *Scanner) skipSpace(i int) (next int, c byte) {
	for data := s.Data; i < len(data); i++ {
		switch c := data[i]; c {
		case ' ', '\t':
		case '\n', '\r':
			s.Dirty = s.Dirty || !s.KeepLines
		default:
			return i, c
		}
	}
	return i, 0
}

// openAt steps into the container that starts at i with c, and notes its kind.
func (s *Scanner) openAt(i int, c byte) int {
	s.Pos = i
	s.Open()
	if s.Bad {
		return -1
	}
	word, bit := &s.objects[s.Depth>>6], uint64(1)<<(s.Depth&63)
	if c == '{' {
		*word |= bit
	} else {
		*word &^= bit
	}
	return i + 1
}

// closing returns the byte that ends the innermost container Skip is in.
func (s *Scanner) closing() byte {
	if s.objects[s.Depth>>6]&(1<<(s.Depth&63)) != 0 {
		return '}'
	}
	return ']'
}

// skipName moves over a name, which starts at i with c, and its colon.
func (s *Scanner) skipName(i int, c byte) int {
	if c != '"' {
		return s.failAt(i, nameExpected)
	}
	data := s.Data
	if i = indexSpecial(data, i+1); i < len(data) && data[i] == '"' {
		i++
	} else if i = s.skipRest(i); i < 0 {
		return -1
	}
	if i, c = s.next(data, i); c != ':' {
		return s.failAt(i, colonExpected)
	}
	return i + 1
}

// skipScalar moves over the number or word that starts at i with c.
func (s *Scanner) skipScalar(i int, c byte) int {
	switch c {
	case 't':
		return s.skipWord(i, "true")
	case 'f':
		return s.skipWord(i, "false")
	case 'n':
		return s.skipWord(i, "null")
	case 'N':
		return s.skipNonFinite(i, "NaN")
	case 'I':
		return s.skipNonFinite(i, "Infinity")
	}
	return s.skipNumber(i, c)
}

func (s *Scanner) skipWord(i int, word string) int {
	if len(s.Data)-i < len(word) || string(s.Data[i:i+len(word)]) != word {
		return s.failAt(i, valueExpected)
	}
	return i + len(word)
}

// skipNonFinite moves over a number that JSON does not have and some writers use.
func (s *Scanner) skipNonFinite(i int, word string) int {
	if s.Strict {
		return s.failAt(i, valueExpected)
	}
	s.Dirty = true
	return s.skipWord(i, word)
}

func (s *Scanner) skipNumber(i int, c byte) int {
	data := s.Data
	problem := valueExpected
	if c == '-' {
		problem = digitExpected
		if i++; i < len(data) && data[i] == 'I' {
			return s.skipNonFinite(i, "Infinity")
		}
	}
	start := i
	if i < len(data) && data[i] == '0' {
		i++
	} else if i = skipDigits(data, i); i == start {
		return s.failAt(i, problem)
	}
	if i >= len(data) || data[i] != '.' && data[i]|0x20 != 'e' {
		return i
	}
	return s.skipFraction(data, i)
}

// skipFraction moves over the fraction and the exponent of a number.
func (s *Scanner) skipFraction(data []byte, i int) int {
	if data[i] == '.' {
		start := i + 1
		if i = skipDigits(data, start); i == start {
			return s.failAt(i, digitExpected)
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		start := i
		if i = skipDigits(data, start); i == start {
			return s.failAt(i, digitExpected)
		}
	}
	return i
}

func skipDigits(data []byte, i int) int {
	for i < len(data) && data[i]-'0' < 10 {
		i++
	}
	return i
}
