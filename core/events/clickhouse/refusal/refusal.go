// Package refusal finds the rows that ClickHouse refuses for their data.
package refusal

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"

	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// dataCodes are the errors of ClickHouse that are about values of a row: the row is refused
// each time, and others are not. All other errors are about the server, the user or the
// tables; events wait until that is repaired.
var dataCodes = map[int]bool{
	6:   true, // CANNOT_PARSE_TEXT
	26:  true, // CANNOT_PARSE_QUOTED_STRING
	27:  true, // CANNOT_PARSE_INPUT_ASSERTION_FAILED
	38:  true, // CANNOT_PARSE_DATE
	41:  true, // CANNOT_PARSE_DATETIME
	69:  true, // ARGUMENT_OUT_OF_BOUND
	70:  true, // CANNOT_CONVERT_TYPE
	72:  true, // CANNOT_PARSE_NUMBER
	117: true, // INCORRECT_DATA
	131: true, // TOO_LARGE_STRING_SIZE
	153: true, // ILLEGAL_DIVISION
	321: true, // VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
	349: true, // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
	376: true, // CANNOT_PARSE_UUID
	395: true, // FUNCTION_THROW_IF_VALUE_IS_NON_ZERO
	407: true, // DECIMAL_OVERFLOW
	467: true, // CANNOT_PARSE_BOOL
	469: true, // VIOLATED_CONSTRAINT
	675: true, // CANNOT_PARSE_IPV4
	676: true, // CANNOT_PARSE_IPV6
}

// AboutData reports whether ClickHouse refuses rows for their values.
func AboutData(err error) bool {
	answer, ok := errors.AsType[*wire.Error](err)
	return ok && dataCodes[answer.Code]
}

// Insertion stores rows, and gives up those that ClickHouse refuses for their data.
type Insertion[R any] struct {
	// Insert stores rows at once. After an error a part of them may be stored.
	Insert func(ctx context.Context, list []R) error
	// Missing returns the rows that are not stored, in a list of its own.
	Missing func(ctx context.Context, list []R) ([]R, error)
	// GiveUp keeps a row that cannot be stored.
	GiveUp func(ctx context.Context, row *R, reason error) error
	// Begun reports that an earlier attempt has stored other rows of the same window: the
	// tables are not the cause.
	Begun bool
}

type refused[R any] struct {
	row    R
	reason error
}

// The bounds of one Run: its transaction is open meanwhile.
const (
	mostRows       = 100
	mostInsertions = 300
	samples        = 8
)

// Result is what Run has done.
type Result[R any] struct {
	Stored, GivenUp int
	Reason          error // of the first row that was given up
	// Left are the last rows, which a later Run stores. Some may be stored.
	Left []R
}

// Run stores list, which it halves until it has found the rows that are refused. If
// ClickHouse takes none of them, and took none before, the tables are the cause: Run gives up
// nothing and fails, as it does for each error that is not about data.
func (in Insertion[R]) Run(ctx context.Context, list []R) (Result[R], error) {
	err := in.Insert(ctx, list)
	if err == nil || !AboutData(err) {
		return Result[R]{Stored: len(list)}, err
	}
	s := search[R]{Insertion: in}
	if err := s.halve(ctx, list, err); err != nil {
		return Result[R]{}, err
	}
	out := Result[R]{Stored: len(list) - len(s.bad) - len(s.left), GivenUp: len(s.bad), Left: s.left}
	if out.Stored == 0 && !in.Begun {
		if taken, failure := s.sample(ctx); failure != nil || !taken {
			return Result[R]{}, cmp.Or(failure, err)
		}
	}
	for i := range s.bad {
		if err := in.GiveUp(ctx, &s.bad[i].row, s.bad[i].reason); err != nil {
			return Result[R]{}, err
		}
	}
	if len(s.bad) > 0 {
		out.Reason = s.bad[0].reason
	}
	return out, nil
}

// search is what halve has found.
type search[R any] struct {
	Insertion[R]
	bad        []refused[R]
	left       []R
	insertions int
}

func (s *search[R]) full() bool { return len(s.bad) >= mostRows || s.insertions >= mostInsertions }

// halve stores what it can of rows that were refused together, in their order, until the
// search is full. Some may be stored: an insertion into several partitions, or with a view,
// can fail behind the first.
func (s *search[R]) halve(ctx context.Context, list []R, reason error) error {
	list, err := s.Missing(ctx, list)
	if err != nil || len(list) == 0 {
		return err
	}
	if len(list) == 1 {
		s.bad = append(s.bad, refused[R]{list[0], reason})
		return nil
	}
	for _, half := range [][]R{list[:len(list)/2], list[len(list)/2:]} {
		if s.full() {
			s.left = append(s.left, half...)
			continue
		}
		s.insertions++
		err := s.Insert(ctx, half)
		if err != nil && AboutData(err) {
			err = s.halve(ctx, half, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sample reports whether ClickHouse takes one of some rows that are left, by chance: each
// attempt tries others.
func (s *search[R]) sample(ctx context.Context) (bool, error) {
	for range min(samples, len(s.left)) {
		row := s.left[rand.IntN(len(s.left))]
		missing, err := s.Missing(ctx, []R{row})
		if err != nil || len(missing) == 0 {
			return err == nil, err
		}
		if err = s.Insert(ctx, missing); err == nil || !AboutData(err) {
			return err == nil, err
		}
	}
	return false, nil
}
