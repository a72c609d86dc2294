package transfer

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// maxBroken bounds the rows with broken references that are collected.
const maxBroken = 100_000

// findBroken finds the rows of the source that refer to rows which do not exist. SQLite
// prevents such rows, unless another program writes the file or damage was repaired.
func (s *session) findBroken(ctx context.Context) error {
	s.broken = map[string]map[string]string{}
	for _, p := range s.plan {
		for _, ref := range p.refers {
			found, err := s.src.brokenRows(ctx, p, ref)
			if err != nil {
				return err
			}
			for _, key := range found {
				if s.broken[p.name] == nil {
					s.broken[p.name] = map[string]string{}
				}
				s.broken[p.name][key.encode()] = fmt.Sprintf("%s refers to a row of %s that does not exist", strings.Join(ref.from, ", "), ref.parent)
			}
		}
	}
	return nil
}

// refuseBroken fails if there are rows with broken references that may not be left out.
func (s *session) refuseBroken() error {
	if s.options.BrokenRows != nil || s.options.DryRun {
		return nil
	}
	var lines []string
	total := 0
	for _, p := range s.plan {
		for encoded, reason := range s.broken[p.name] {
			if total++; total > 10 {
				continue
			}
			key, err := decodeKey(encoded)
			if err != nil {
				return err
			}
			lines = append(lines, fmt.Sprintf("table %s, row with %s: %s", p.name, p.describeKey(key), reason))
		}
	}
	if total == 0 {
		return nil
	}
	slices.Sort(lines)
	return fmt.Errorf("%d rows of the source refer to rows that do not exist; --broken-rows FILE writes them to a file and leaves them out:\n%s", total, strings.Join(lines, "\n"))
}

// brokenRows returns the keys of rows whose foreign key has no row.
func (s *source) brokenRows(ctx context.Context, p *tablePlan, ref reference) (out []rowKey, err error) {
	var some, same []string
	for i, from := range ref.from {
		some = append(some, "c."+quote(from)+" IS NOT NULL")
		same = append(same, "p."+quote(ref.to[i])+" = c."+quote(from))
	}
	keys := make([]string, len(p.keys))
	for i, k := range p.keys {
		keys[i] = "c." + quote(k)
	}
	query := fmt.Sprintf("SELECT %s FROM %s AS c WHERE %s AND NOT EXISTS (SELECT 1 FROM %s AS p WHERE %s) LIMIT %d",
		strings.Join(keys, ", "), quote(p.name), strings.Join(some, " AND "), quote(ref.parent), strings.Join(same, " AND "), maxBroken)
	values := make([]any, len(keys))
	pointers := make([]any, len(keys))
	for i := range values {
		pointers[i] = &values[i]
	}
	err = s.each(ctx, query, func(r *sql.Rows) error {
		if err := r.Scan(pointers...); err != nil {
			return err
		}
		key, err := newKey(values)
		out = append(out, key)
		return err
	})
	return out, err
}
