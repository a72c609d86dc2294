package search

import (
	"math/bits"
	"regexp/syntax"
)

// Sizes of a regular expression that are too large to compute exactly.
const (
	// MaxSize is the largest size that Size returns.
	MaxSize = 1 << 40
	// runesPerInst is how many ends of character ranges take the memory of one
	// instruction.
	runesPerInst = 10
)

// Program is the estimated size of a compiled regular expression.
type Program struct {
	// Insts is the number of instructions; a match executes each of them at most
	// once per character of the text. Large character classes count as up to
	// four instructions, because their search takes as long.
	Insts int64
	// Memory is Insts and the tables of the character classes, in instructions,
	// about 40 bytes each.
	Memory int64
}

// Size estimates the compiled size of a regular expression in RE2 syntax from
// its syntax tree, without expanding repetitions: the time and the memory are
// those of reading the pattern. The estimate is never below the number of
// instructions that regexp compiles. An invalid pattern returns the error of
// the parser.
func Size(pattern string) (Program, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return Program{}, err
	}
	const failAndMatch = 2
	var s sizer
	insts := clampSize(s.insts(tree) + failAndMatch)
	return Program{Insts: insts, Memory: clampSize(insts + s.runes/runesPerInst)}, nil
}

func clampSize(n int64) int64 { return min(n, MaxSize) }

// sizer adds up the ranges of the character classes. A repetition shares them.
type sizer struct{ runes int64 }

// insts returns the number of instructions of a tree after its repetitions are
// expanded.
func (s *sizer) insts(re *syntax.Regexp) int64 {
	switch re.Op {
	case syntax.OpLiteral:
		return max(1, int64(len(re.Rune)))
	case syntax.OpCharClass:
		s.runes += int64(len(re.Rune))
		return 1 + int64(bits.Len(uint(len(re.Rune)/8))/3)
	case syntax.OpCapture, syntax.OpStar:
		return clampSize(s.sum(re.Sub) + 2)
	case syntax.OpPlus, syntax.OpQuest:
		return clampSize(s.sum(re.Sub) + 1)
	case syntax.OpConcat:
		return max(1, s.sum(re.Sub))
	case syntax.OpAlternate:
		return clampSize(s.sum(re.Sub) + int64(len(re.Sub)))
	case syntax.OpRepeat:
		return s.repeat(re)
	default:
		return 1
	}
}

func (s *sizer) sum(list []*syntax.Regexp) int64 {
	n := int64(0)
	for _, re := range list {
		n = clampSize(n + s.insts(re))
	}
	return n
}

// repeat returns the size of x{min,max}: min times x, and then x* without a
// maximum, else nested x? for the rest.
func (s *sizer) repeat(re *syntax.Regexp) int64 {
	one := s.sum(re.Sub)
	n := int64(re.Min) * one
	if re.Max < 0 {
		return clampSize(n + one + 2)
	}
	return clampSize(max(1, n+int64(re.Max-re.Min)*(one+1)))
}
