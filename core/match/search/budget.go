package search

// Budget bounds the work of matches that compare texts: those of one request, or
// of one event with one action. Work is counted and not timed, so that the same
// inputs have the same result on every machine. One unit is the comparison of
// one byte of text, or one step of a regular expression, about 10 ns at worst.
//
// A match whose work exceeds the rest of the budget is Unknown and costs
// nothing; cheaper ones continue. A Budget belongs to one goroutine.
type Budget struct {
	left    int64
	spent   int64
	refusal Refusal
}

// DefaultBudget is the work that one request may cause, about 100 ms at worst.
const DefaultBudget = 10_000_000

// MaxPatternText is the most bytes of text that a regular expression searches
// under a budget. The match of a longer text is Unknown: a part of it could
// give another result.
const MaxPatternText = 64 << 10

// Refusal explains why a Budget refused a match.
type Refusal uint8

// The reasons.
const (
	NotRefused  Refusal = iota
	TextTooLong         // a regular expression, and more text than MaxPatternText
	BudgetSpent         // more work than is left
)

// Reset gives the budget a number of units and forgets refusals.
func (b *Budget) Reset(units int64) { *b = Budget{left: units} }

// Refusal returns why the last refused match was refused, NotRefused if none was.
func (b *Budget) Refusal() Refusal { return b.refusal }

// Spent returns the work since Reset.
func (b *Budget) Spent() int64 { return b.spent }

// Spend takes units and reports whether there were enough. A nil Budget has no
// end.
func (b *Budget) Spend(units int64) bool {
	if b == nil {
		return true
	}
	if units > b.left {
		b.refusal = BudgetSpent
		return false
	}
	b.left -= units
	b.spent += units
	return true
}

// Prices. A program of more than maxBacktrack instructions, or with more than
// maxVisited steps, is matched by a slower algorithm.
const (
	maxBacktrack = 500
	maxVisited   = 256 << 10
	slowFactor   = 3
)

// SpendPattern is Spend for a search with a program of size instructions.
func (b *Budget) SpendPattern(size int64, text int) bool {
	if b == nil {
		return true
	}
	if text > MaxPatternText {
		b.refusal = TextTooLong
		return false
	}
	steps := size * int64(text+1)
	if size > maxBacktrack || steps > maxVisited {
		steps *= slowFactor
	}
	return b.Spend(steps)
}
