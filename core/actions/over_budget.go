package actions

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
)

// OverBudget counts and logs actions that were not decided for an event, because
// matching takes more work than one event may cause. It logs an action once a
// minute. It is safe for concurrent use.
type OverBudget struct {
	log   *zap.Logger
	count prometheus.Counter

	mu     sync.Mutex
	logged map[int64]time.Time // by action
}

// overBudgetPause is the time between two log lines about one action.
const overBudgetPause = time.Minute

// maxOverBudget bounds the actions whose last log line is kept.
const maxOverBudget = 10_000

// NewOverBudget returns an OverBudget. reg may be nil.
func NewOverBudget(log *zap.Logger, reg prometheus.Registerer) *OverBudget {
	return &OverBudget{
		log: log.Named("actions"), logged: map[int64]time.Time{},
		count: promauto.With(reg).NewCounter(prometheus.CounterOpts{
			Name: "guidon_actions_over_budget_total",
			Help: "Actions that were not decided for events, because matching takes more work than one event may cause.",
		}),
	}
}

// Report records that an action was not decided for an event. The action is 0 in
// a search for persons.
func (o *OverBudget) Report(projectID, actionID int64) {
	o.count.Inc()
	o.mu.Lock()
	now := time.Now()
	known := now.Sub(o.logged[actionID]) < overBudgetPause
	if !known {
		if len(o.logged) >= maxOverBudget {
			clear(o.logged)
		}
		o.logged[actionID] = now
	}
	o.mu.Unlock()
	if !known {
		o.log.Warn("action over its matching budget: events are undecided",
			zap.Int64("project_id", projectID), zap.Int64("action", actionID))
	}
}
