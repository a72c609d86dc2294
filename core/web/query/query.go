// Package query parses query parameters that several features share, and paginates lists in
// memory.
package query

import (
	"slices"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// Bool returns a boolean of the query, false if it is missing or empty. Anything else than a
// boolean is Invalid.
func Bool(c *web.Call, name string) (bool, error) {
	b, err := OptionalBool(c, name)
	return b != nil && *b, err
}

// OptionalBool is Bool with nil for a missing or empty parameter.
func OptionalBool(c *web.Call, name string) (*bool, error) {
	text := c.Query(name)
	if text == "" {
		return nil, nil
	}
	b, err := strconv.ParseBool(strings.ToLower(text))
	if err != nil {
		return nil, fault.Field(name, "invalid_input", "Must be a valid boolean.")
	}
	return &b, nil
}

// ID returns the id of a row from the query, 0 if it is missing or empty. Anything else than a
// positive integer is Invalid.
func ID(c *web.Call, name string) (int64, error) {
	text := c.Query(name)
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, fault.Field(name, "invalid_input", "Must be a positive integer.")
	}
	return id, nil
}

// IDs returns the ids of rows in a query, with commas between them, each once and in their
// order; none if the parameter is missing or empty. Anything else than positive integers, and
// more than limit of them, is Invalid.
func IDs(c *web.Call, name string, limit int) ([]int64, error) {
	text := c.Query(name)
	if text == "" {
		return nil, nil
	}
	var ids []int64
	for part := range strings.SplitSeq(text, ",") {
		id, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil || id < 1 {
			return nil, fault.Field(name, "invalid_input", "Must be a comma-separated list of ids.")
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		if len(ids) > limit {
			return nil, fault.Fieldf(name, "max_length", "Ensure this list has at most %d ids.", limit)
		}
	}
	return ids, nil
}

// Cut returns the items of a whole list that are on a page: at most limit from offset on.
// Both are at least 0 and at most math.MaxInt32.
func Cut[T any](all []T, limit, offset int) []T {
	return all[min(offset, len(all)):min(offset+limit, len(all))]
}
