package flags

import (
	"context"
	"encoding/json"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/flags/document"
)

// show turns flags into the form answers have, with one question each for
// their creators, their cohorts and what who may do.
func (s *Service) show(ctx context.Context, who *auth.Principal, list ...*Flag) ([]view, error) {
	views := make([]view, 0, len(list))
	if len(list) == 0 {
		return views, nil
	}
	may, err := s.CanEdit(ctx, who, list...)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, 0, len(list))
	for _, f := range list {
		ids = append(ids, f.CreatedBy)
	}
	users, err := s.users(ctx, ids)
	if err != nil {
		return nil, err
	}
	names, err := s.cohortNames(ctx, list)
	if err != nil {
		return nil, err
	}
	now := s.now()
	for _, f := range list {
		views = append(views, f.show(shownFilters(f.Filters, names), users[f.CreatedBy], may[f.ID], now))
	}
	return views, nil
}

// users finds those of the people that are still there.
func (s *Service) users(ctx context.Context, ids []int64) (map[int64]*auth.User, error) {
	found, err := s.deps.Users.UsersByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]*auth.User, len(found))
	for id, u := range found {
		out[id] = &u
	}
	return out, nil
}

func (s *Service) cohortNames(ctx context.Context, list []*Flag) (map[int64]string, error) {
	var ids []int64
	for _, f := range list {
		ids = append(ids, document.CohortReferences(f.Filters)...)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return s.deps.Cohorts.Names(ctx, list[0].ProjectID, ids)
}

// shownFilters are stored filters as answers show them: with their list of
// condition sets, and each cohort filter with the name of its cohort, null
// when it is gone. Unreadable filters are shown as they are.
func shownFilters(filters json.RawMessage, names map[int64]string) json.RawMessage {
	normal, err := document.Normalized(filters)
	if err != nil {
		return filters
	}
	if names == nil {
		return normal
	}
	return document.RewriteProperties(normal, document.ConditionLists, func(p *document.Object) {
		if raw, _ := p.Get("type"); string(raw) != `"cohort"` {
			return
		}
		raw, _ := p.Get("value")
		name := json.RawMessage("null")
		if id, ok := document.Integer(raw); ok {
			if n, ok := names[id]; ok {
				name = document.Quote(n)
			}
		}
		p.Set("cohort_name", name)
	})
}
