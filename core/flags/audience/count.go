package audience

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/persons"
)

// flagKey is the key of the counted flag. No stored flag has it.
const flagKey = ":census"

var errBudgetSpent = errors.New("count budget spent")

// count is a running count.
type count struct {
	deps           *Dependencies
	projectID      int64
	set            *eval.Set
	groupType      string
	idsNeeded      bool // the filters need distinct ids
	listsNeeded    bool // the filters test static cohorts
	hashKeysNeeded bool // the filters depend on flags with experience continuity
	dependsOnID    bool // a filter tests the distinct id
	byDevice       bool // the filters depend on flags that bucket by device
	now            time.Time
	deadline       time.Time   // of the work; waits are added to it
	waits          *scan.Waits // for places of scans

	counted, affected, unknown int64
}

// subject is one person or group of a page. A person is counted if the filters hold
// for one of the distinct ids that a filter tests: decide asks with any of them.
type subject struct {
	request eval.Request
	known   eval.KnownProperties
	others  []string // further distinct ids to try
	on      bool     // the filters hold
}

func (n *count) countPersons(ctx context.Context, page []persons.Person) error {
	subjects, err := n.subjects(ctx, page)
	if err != nil {
		return err
	}
	_, err = n.add(ctx, subjects)
	return err
}

// subjects returns the persons of a page with the stored data that the filters read.
func (n *count) subjects(ctx context.Context, page []persons.Person) ([]subject, error) {
	lists, err := n.staticCohorts(ctx, page)
	if err != nil {
		return nil, err
	}
	hashKeys, err := n.hashKeys(ctx, page)
	if err != nil {
		return nil, err
	}
	subjects := make([]subject, 0, len(page))
	for i := range page {
		p := &page[i]
		s := subject{
			request: eval.Request{FlagKeys: []string{flagKey}},
			known:   eval.KnownProperties{PersonProperties: p.Properties, HashKeys: hashKeys[p.ID]},
		}
		if len(p.DistinctIDs) > 0 {
			s.request.DistinctID, s.others = p.DistinctIDs[0], p.DistinctIDs[1:]
		}
		for _, id := range p.DistinctIDs {
			s.known.StaticCohorts = append(s.known.StaticCohorts, lists[id]...)
		}
		subjects = append(subjects, s)
	}
	return subjects, nil
}

func (n *count) staticCohorts(ctx context.Context, page []persons.Person) (map[string][]int64, error) {
	if !n.listsNeeded {
		return nil, nil
	}
	var ids []string
	for i := range page {
		ids = append(ids, page[i].DistinctIDs...)
	}
	return n.deps.StaticCohorts.StaticCohortsOf(ctx, n.projectID, ids)
}

func (n *count) hashKeys(ctx context.Context, page []persons.Person) (map[int64]map[string]string, error) {
	if !n.hashKeysNeeded {
		return nil, nil
	}
	ids := make([]int64, len(page))
	for i := range page {
		ids[i] = page[i].ID
	}
	return n.deps.HashKeys.HashKeysOf(ctx, n.projectID, ids)
}

func (n *count) countGroups(ctx context.Context, page []persons.Group) error {
	subjects := make([]subject, 0, len(page))
	for i := range page {
		g := &page[i]
		subjects = append(subjects, subject{
			request: eval.Request{FlagKeys: []string{flagKey}, Groups: map[string]string{n.groupType: g.Key}},
			known:   eval.KnownProperties{GroupProperties: map[string]json.RawMessage{n.groupType: g.Properties}},
		})
	}
	_, err := n.add(ctx, subjects)
	return err
}

// add counts the subjects of one page, and returns those that it evaluated. Plugins
// are called once for the page. It returns errBudgetSpent after the deadline.
func (n *count) add(ctx context.Context, page []subject) ([]subject, error) {
	var plugins eval.PluginRound
	if n.deps.Plugins != nil {
		plugins = n.deps.Plugins()
		for i := range page {
			page[i].known.Plugins = plugins
		}
	}
	affected, unknown, done := n.evaluate(page)
	page = page[:done]
	if plugins != nil && plugins.Ask(ctx) {
		affected, unknown, done = n.evaluate(page)
		page = page[:done]
	}
	n.counted, n.affected, n.unknown = n.counted+int64(len(page)), n.affected+affected, n.unknown+unknown
	if n.isOver() {
		return page, errBudgetSpent
	}
	return page, nil
}

// isOver reports whether the budget is spent.
func (n *count) isOver() bool { return time.Now().After(n.deadline.Add(n.waits.Total())) }

// workPerCheck is the work on texts after which the deadline is checked, about
// 50 ms at worst.
const workPerCheck = 5_000_000

// evaluate counts the subjects of a page, and returns how many it evaluated: the
// deadline ends a page whose subjects take much work.
func (n *count) evaluate(page []subject) (affected, unknown int64, done int) {
	work := int64(0)
	for i := range page {
		if work > workPerCheck {
			if work = 0; n.isOver() {
				return affected, unknown, i
			}
		}
		on, failed, spent := n.decide(page[i])
		page[i].on = on
		work += spent
		switch {
		case on:
			affected++
		case failed:
			unknown++
		}
	}
	return affected, unknown, len(page)
}

// decide reports whether the filters hold for a subject, or cannot be decided, and
// the work that it took.
func (n *count) decide(s subject) (on, failed bool, work int64) {
	for {
		decided, spent := n.set.EvaluateWork(&s.request, &s.known, n.now)
		work += spent
		for _, d := range decided {
			failed = failed || d.Failed != eval.CauseNone
			on = on || d.Failed == eval.CauseNone && d.On
		}
		if on || len(s.others) == 0 || !n.dependsOnID {
			return on, failed, work
		}
		s.request.DistinctID, s.others = s.others[0], s.others[1:]
	}
}
