package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/jsontext"
)

// Member is a person or a group of which the events are read.
type Member struct {
	PersonID  string // uuid or number of a person; empty for a group
	TypeIndex int    // of a group
	Key       string // of a group
}

// Related is what occurs in the events of a person or a group.
type Related struct {
	Groups      map[int][]string // keys by index of type, without the group itself
	DistinctIDs []string         // of the events of a group
	// Since is zero if all events since the requested time were read. Else only
	// those since this time were.
	Since time.Time
}

// Bounds of a search for related persons and groups.
const (
	relatedEvents = 100_000 // events that are read
	relatedKeys   = 1000    // persons, and groups of each type
	relatedTime   = 5 * time.Second
)

// Related returns the groups in the events of a person or group after a time, and
// for a group the distinct ids of its events: the newest first. It reads a bounded
// number of events in a bounded time.
func (s *Service) Related(ctx context.Context, projectID int64, m Member, after time.Time) (Related, error) {
	var out Related
	err := s.db.RunScan(ctx, projectID, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, min(relatedTime, s.cfg.QueryTimeout))
		defer cancel()
		out, err = s.findRelated(ctx, projectID, m, after)
		return err
	})
	return out, err
}

func (s *Service) findRelated(ctx context.Context, projectID int64, m Member, after time.Time) (Related, error) {
	r := relatedSearch{member: m, seen: map[string]bool{}, out: Related{Groups: map[int][]string{}}}
	f := Filter{PersonID: m.PersonID, After: after}
	if m.PersonID == "" {
		f.Contains = string(jsontext.AppendString(nil, m.Key)) // narrows the events that are parsed
	}
	reached := time.Now()
	pacer := scan.PacerOf(ctx)
	for read := 0; ; {
		rows, err := s.backend.List(ctx, projectID, f, s.scan.page)
		if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil && err != nil {
			r.out.Since = reached
			return r.out, nil //nolint:nilerr // the answer says from when on it is complete
		}
		if err != nil {
			return Related{}, fmt.Errorf("read related events: %w", err)
		}
		for i := range rows {
			pacer.Pace()
			r.add(&rows[i])
		}
		if len(rows) < s.scan.page && !r.full {
			return r.out, nil
		}
		if len(rows) > 0 {
			f.Cursor = rows[len(rows)-1].cursor()
			reached = time.UnixMicro(f.Cursor.Timestamp).UTC()
		}
		if read += len(rows); r.full || read >= relatedEvents {
			r.out.Since = reached
			return r.out, nil
		}
	}
}

// groupProperty is the prefix of the properties that hold the groups of an event.
const groupProperty = "$group_"

// relatedSearch collects what occurs in events.
type relatedSearch struct {
	member Member
	parser fastjson.Parser
	seen   map[string]bool
	out    Related
	full   bool // a bound is reached
}

func (r *relatedSearch) add(row *Record) {
	properties, err := r.parser.Parse(row.Properties)
	if err != nil {
		return
	}
	if r.member.PersonID == "" {
		if string(properties.GetStringBytes(groupProperty+strconv.Itoa(r.member.TypeIndex))) != r.member.Key {
			return
		}
		if r.isNew("", row.DistinctID, len(r.out.DistinctIDs)) {
			r.out.DistinctIDs = append(r.out.DistinctIDs, row.DistinctID)
		}
	}
	object, err := properties.Object()
	if err != nil {
		return
	}
	object.Visit(func(name []byte, v *fastjson.Value) {
		index, ok := groupIndex(string(name))
		key := string(v.GetStringBytes())
		if !ok || key == "" || r.member.PersonID == "" && index == r.member.TypeIndex {
			return
		}
		if r.isNew(string(name), key, len(r.out.Groups[index])) {
			r.out.Groups[index] = append(r.out.Groups[index], key)
		}
	})
}

// isNew reports whether a key is not in its list yet, which has n keys, and marks it.
func (r *relatedSearch) isNew(list, key string, n int) bool {
	name := list + " " + key
	if r.seen[name] {
		return false
	}
	if n == relatedKeys {
		r.full = true
		return false
	}
	r.seen[name] = true
	return true
}

// groupIndex returns the index of a group type from the name of a property.
func groupIndex(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, groupProperty)
	if !ok {
		return 0, false
	}
	index, err := strconv.Atoi(digits)
	return index, err == nil && index >= 0
}
