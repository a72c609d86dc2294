// Package sample has one of each change that mutants makes.
package sample

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

type Price int

type list[T any] struct{ items []T }

var limit = initial() + 1

func initial() int { return 9 }

// Discount is tested well but for its boundary.
func Discount(total Price, member bool) (Price, error) {
	if total < 0 {
		return 0, errors.New("negative")
	}
	if member && total > 100 ||
		total > 1000 {
		total -= total / 10
		slog.Info("discount", "total", total)
	}
	return total, nil
}

// Count never ends without its increment.
func Count(to int) int {
	n := 0
	for n < to {
		n++
	}
	return n
}

func Untested(d time.Duration) string {
	switch {
	case d > time.Hour:
		return fmt.Sprint(-d % time.Hour)
	}
	return ""
}

func (l *list[T]) has(equal func(T) bool) bool {
	for _, item := range l.items {
		if !equal(item) {
			continue
		}
		return true
	}
	return false
}

func Within(n int) bool {
	l := list[int]{items: []int{1, 2, limit}}
	return l.has(func(item int) bool { return item == n })
}
