// Package text shortens texts and finds similar names.
//
// Texts of clients and plugins reach columns, log lines and messages with a
// limit. A cut between the bytes of a character would make them invalid UTF-8,
// which PostgreSQL refuses, so all functions here cut between characters.
// Limits are in bytes (Truncate, Ellipsis) where storage or a line bounds the
// text, and in characters (TruncateChars, EllipsisChars) where a protocol does.
//
// The package repairs nothing: text that is invalid UTF-8 stays invalid.
package text

import (
	"iter"
	"unicode/utf8"
)

const ellipsis = "…"

// Truncate returns at most the first n bytes of s, without the rest of a
// character that would be split.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := max(n, 0)
	for end > max(n-utf8.UTFMax, 0) && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// Ellipsis returns s, or at most its first n bytes followed by an ellipsis.
func Ellipsis(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Truncate(s, n) + ellipsis
}

// TruncateChars returns at most the first n characters of s.
func TruncateChars(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n <= 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// EllipsisChars returns s, or its first n-1 characters followed by an ellipsis:
// at most n characters in all.
func EllipsisChars(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	return TruncateChars(s, n-1) + ellipsis
}

// Nearest returns the name of known that takes the fewest edits to become name, for a
// "did you mean". An edit inserts, deletes or replaces a character, or swaps two that are
// neighbours. It returns "" when each differs by more than atMost edits. Of several
// equally near names it returns the alphabetically first.
func Nearest(name string, known iter.Seq[string], atMost int) string {
	best, distance := "", atMost
	for k := range known {
		d := edits(name, k)
		if d < distance || d == distance && (best == "" || k < best) {
			best, distance = k, d
		}
	}
	return best
}

// edits returns the optimal string alignment distance, that of Damerau and Levenshtein
// without edits within swapped characters.
func edits(from, to string) int {
	a, b := []rune(from), []rune(to)
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
