package match

import "github.com/guidonhq/guidon/core/match"

// The work on texts that matching may cause, in units of match.Budget, about
// 10 ns each at worst. A definition that needs more for an event is Unknown for
// it; the others are not affected.
const (
	// maxActionWork is the work of one event with one definition.
	maxActionWork = 2_000_000
	// maxEventWork is the work of one event with all definitions of an Index.
	maxEventWork = 8_000_000
	// A Meter gives eventShare units per event, and saves up to meterBurst.
	eventShare = 200_000
	meterBurst = 20_000_000
)

// Meter bounds the work of matching many events with one definition: an event
// may be expensive, and all of them together cost no more than a share each. It
// counts work, so that the same events have the same results. It belongs to one
// goroutine.
type Meter struct {
	budget match.Budget
	saved  int64
	over   int64
}

// NewMeter returns a Meter and sets the budget of env.
func NewMeter(env *match.Env) *Meter {
	m := &Meter{saved: meterBurst}
	env.Budget = &m.budget
	return m
}

// Begin gives the next event its budget.
func (m *Meter) Begin() {
	m.saved = min(m.saved-m.budget.Spent()+eventShare, meterBurst)
	m.budget.Reset(min(maxActionWork, m.saved))
}

// Over reports whether r is Unknown because the event is over its budget, and
// counts it.
func (m *Meter) Over(r match.Result) bool {
	if r != match.Unknown || m.budget.Refusal() == match.NotRefused {
		return false
	}
	m.over++
	return true
}

// Count returns how many events were over their budget.
func (m *Meter) Count() int64 { return m.over }
