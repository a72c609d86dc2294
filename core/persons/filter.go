package persons

import (
	"context"
	"time"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/match"
)

// filterPersons reads all persons, newest first, and returns a page of those that
// pass the property filters, and their total number.
func (s *Service) filterPersons(ctx context.Context, projectID int64, q *Query, limit, offset int) ([]Person, int, error) {
	set := filterSet{filters: q.Properties, env: match.Env{Now: time.Now()}}
	rest := *q
	rest.Properties = nil
	out, total := []Person{}, 0
	var last *Person
	for {
		page, err := s.store.findAfter(ctx, projectID, &rest, last, walkPage)
		if err != nil {
			return nil, 0, err
		}
		for i := range page {
			if !set.passes(page[i].Properties) {
				continue
			}
			if total >= offset && len(out) < limit {
				out = append(out, page[i])
			}
			total++
		}
		if len(page) < walkPage {
			break
		}
		last = &page[len(page)-1]
	}
	return out, total, s.store.addDistinctIDs(ctx, out)
}

// filterSet matches properties against filters.
type filterSet struct {
	filters []*match.Filter
	env     match.Env
	parser  fastjson.Parser
	arena   []byte
}

func (s *filterSet) passes(properties []byte) bool {
	v, err := s.parser.ParseBytes(properties)
	if err != nil {
		return false
	}
	for _, f := range s.filters {
		s.arena = s.arena[:0]
		var value match.Value
		value, s.arena = match.FromJSON(v.Get(f.Property()), s.arena)
		if f.Match(&value, &s.env) != match.True {
			return false
		}
	}
	return true
}
