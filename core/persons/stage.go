package persons

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/sdk"
)

// maxAttempts bounds how often the stage begins again because another node was
// faster. Each time one of the two made progress.
const maxAttempts = 12

// Process lets the events of batch, in order, have their effect on persons and
// groups. It joins the transaction in ctx, or makes one.
//
// On success each event has its PersonID, and events that name groups carry a
// property $group_<index> for each. The warnings are for the owners of the
// projects. On an error nothing of the batch may be kept: the caller rolls
// back, and may try the same batch again. Doing a batch twice changes nothing.
func (s *Service) Process(ctx context.Context, batch []*sdk.Event) ([]Warning, error) {
	work := takeFacts(len(batch))
	defer work.release()
	var warnings []Warning
	for i, ev := range batch {
		if w := work.facts[i].read(ev); w != nil {
			warnings = append(warnings, *w)
		}
	}
	var books []*book
	err := s.db.Tx(ctx, func(ctx context.Context) error {
		books = books[:0]
		for _, part := range byProject(work.facts) {
			b, err := s.project(ctx, part)
			if err != nil {
				return fmt.Errorf("process persons of project %d: %w", part[0].ev.ProjectID, err)
			}
			books = append(books, b)
			s.db.AfterCommit(ctx, func() { s.committed(b) })
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, b := range books {
		warnings = append(warnings, b.warnings...)
	}
	for i := range work.facts {
		work.facts[i].finish()
	}
	return warnings, nil
}

// byProject splits facts by project, ascending, each part in its order. All
// nodes lock in this order.
func byProject(facts []fact) [][]*fact {
	parts := map[int64][]*fact{}
	var order []int64
	for i := range facts {
		id := facts[i].ev.ProjectID
		if parts[id] == nil {
			order = append(order, id)
			parts[id] = make([]*fact, 0, len(facts)-i)
		}
		parts[id] = append(parts[id], &facts[i])
	}
	slices.Sort(order)
	out := make([][]*fact, len(order))
	for i, id := range order {
		out[i] = parts[id]
	}
	return out
}

// project processes the events of one project.
func (s *Service) project(ctx context.Context, part []*fact) (*book, error) {
	w := want(part)
	for attempt := range maxAttempts {
		b := newBook(part[0].ev.ProjectID)
		b.attempt, b.groups.limit = attempt, s.cfg.GroupTypes
		if attempt > 2 {
			b.random = uuid.NewString // the id that follows is taken, by whatever
		}
		done, err := s.stage.attempt(ctx, func(ctx context.Context) (bool, error) {
			return s.try(ctx, b, w, part)
		})
		if err != nil {
			return nil, err
		}
		if done {
			return b, nil
		}
		s.metrics.retried.Inc()
	}
	return nil, fault.New(fault.Unavailable, "merge_race_condition", "Other nodes keep changing the same persons.")
}

// try loads, thinks and writes; false when another node came between.
func (s *Service) try(ctx context.Context, b *book, w *wanted, part []*fact) (bool, error) {
	if err := s.stage.load(ctx, b, w); err != nil {
		return false, err
	}
	for _, f := range part {
		b.take(f)
	}
	b.loners = slices.DeleteFunc(b.loners, func(id string) bool { return s.loners.has(b.project, id) })
	return s.stage.save(ctx, b, func(ctx context.Context) error { return s.moved(ctx, b) })
}

// moved tells the other rooms of the merges, in the order they happened. A
// person that came and went within the batch was never theirs to know.
func (s *Service) moved(ctx context.Context, b *book) error {
	for _, m := range b.merges {
		into := m.into
		for into.id == 0 {
			into = into.into
		}
		if m.from.id == 0 {
			continue
		}
		for _, hook := range s.hooks {
			if err := hook(ctx, b.project, m.from.id, into.id); err != nil {
				return fmt.Errorf("follow the merge of person %d into %d: %w", m.from.id, into.id, err)
			}
		}
	}
	return nil
}

// committed brings memory up to what is now stored.
func (s *Service) committed(b *book) {
	s.cache.forget(b)
	s.loners.add(b.project, b.loners)
	s.metrics.created.Add(float64(len(b.created)))
	s.metrics.merged.Add(float64(len(b.merges)))
	for i := range b.warnings {
		if b.warnings[i].Type == WarnAlreadyIdentified || b.warnings[i].Type == WarnIllegalDistinctID {
			s.metrics.refused.Inc()
		}
	}
}

// finish writes into the event what was found out about it.
func (f *fact) finish() {
	if f.who != nil {
		f.ev.PersonID = f.who.final().uuid
	} else {
		f.ev.PersonID = PersonUUID(f.ev.ProjectID, f.ev.DistinctID)
	}
	if f.bonus != "" {
		f.ev.Properties = withBonus(f.ev.Properties, f.bonus)
	}
}

// withBonus is the JSON object raw with the members in bonus at its end. The
// same bonus is given once.
func withBonus(raw []byte, bonus string) json.RawMessage {
	end := bytes.LastIndexByte(raw, '}')
	if end < 0 || bytes.HasSuffix(raw[:end], []byte(bonus)) {
		return raw
	}
	if len(bytes.TrimSpace(raw[:end])) == 1 {
		bonus = bonus[1:]
	}
	out := make([]byte, 0, end+len(bonus)+1)
	out = append(out, raw[:end]...)
	out = append(out, bonus...)
	return append(out, '}')
}

// work is the memory of one call of Process.
type work struct{ facts []fact }

var works = sync.Pool{New: func() any { return new(work) }}

func takeFacts(n int) *work {
	w := works.Get().(*work)
	w.facts = slices.Grow(w.facts[:0], n)[:n]
	return w
}

func (w *work) release() {
	for i := range w.facts {
		w.facts[i] = fact{copied: w.facts[i].copied[:0]}
	}
	works.Put(w)
}
