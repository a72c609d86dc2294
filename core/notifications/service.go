package notifications

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/config/live"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbclock"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/sdk"
)

// Notifier is an instance of a notifier plugin. It is safe for concurrent use.
type Notifier interface {
	// Name is the instance's name in the config.
	Name() string
	// Properties returns its rate and batch limits.
	Properties() sdk.NotifierProperties
	// Available reports whether it can be called now.
	Available() bool
	// Notify sends messages and returns a result for each, in order. After an
	// error the outcome of all is unknown.
	Notify(ctx context.Context, items []*sdk.Notification) ([]sdk.NotifyResult, error)
}

// Notifiers lists the notifiers.
type Notifiers interface {
	// Notifiers returns the configured notifiers, in any state.
	Notifiers() []Notifier
}

// Actions reads and matches the actions that post. actions.EventMatcher
// implements it.
type Actions interface {
	// HasPosting reports whether the project has an action that posts.
	HasPosting(projectID int64) bool
	// MatchPosting calls fn for each event of batch and each action of the project
	// that posts and that the event fits. The actions must not be changed.
	MatchPosting(ctx context.Context, projectID int64, batch []*sdk.Event, fn func(ev *sdk.Event, a *actions.Action)) error
	// Action returns an action, also a deleted one, or NotFound.
	Action(ctx context.Context, projectID, id int64) (*actions.Action, error)
	// LatestMatch returns the newest event that fits the action, or nil.
	LatestMatch(ctx context.Context, projectID, id int64) (*sdk.Event, error)
}

// People reads stored persons and groups.
type People interface {
	Properties(ctx context.Context, projectID int64, distinctID string) ([]byte, bool, error)
	GroupProperties(ctx context.Context, projectID int64, groupType, groupKey string) ([]byte, bool, error)
}

// Projects reads projects.
type Projects interface {
	// Project returns a project, or NotFound.
	Project(ctx context.Context, id int64) (auth.Project, error)
}

// Dependencies are what the service uses; Now and Metrics may be nil.
type Dependencies struct {
	// Owner names the process. No other running process has the name, and the next
	// process on the same data has it again: it sends at once what the one before
	// did not confirm. Without a name that takes as long as a lease.
	Owner string
	// Dead reports whether a process of another name has died. Others end its leases
	// then, and do not wait for their time. Nil if it cannot be known.
	Dead      func(owner string) bool
	Notifiers Notifiers
	Actions   Actions
	People    People
	Projects  Projects
	Now       func() time.Time // nil: the clock of the database
	Log       *zap.Logger
	Metrics   prometheus.Registerer // may be nil
	Tracing   *tracing.Tracing      // may be nil
}

// Service queues notifications and delivers them. It is safe for concurrent use.
type Service struct {
	*base
	composer *composer
	queue    *queue
	sender   *sender
}

// base is what the parts of the service share.
type base struct {
	cfg     Config
	live    *live.Value[Config] // rates and retention; cfg has the other settings
	quiet   quiet
	store   *store
	deps    Dependencies
	log     *zap.Logger
	metrics metrics
	woken   chan struct{} // a notification is due

	holder   string         // of leases
	database *dbclock.Clock // of leases, rates and times, unless deps.Now is set
}

type metrics struct {
	results    *prometheus.CounterVec // by notifier and outcome
	suppressed prometheus.Counter
	waiting    prometheus.Gauge
}

// Follow applies the live settings of v, now and after each change.
func (s *Service) Follow(v *live.Value[Config]) { v.Follow(func(c *Config) { s.live.Store(*c) }) }

// NewService returns a service that is not started.
func NewService(cfg Config, d *db.DB, deps Dependencies) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	q, err := parseQuiet(cfg.QuietHours)
	if err != nil {
		return nil, fmt.Errorf("notifications.quiet_hours %w", err)
	}
	f := promauto.With(deps.Metrics)
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "guidon", Subsystem: "notifications", Name: name, Help: help}
	}
	b := &base{
		cfg: cfg, live: live.New(cfg), quiet: q, store: &store{d}, deps: deps, log: deps.Log.Named("notifications"), woken: make(chan struct{}, 1),
		metrics: metrics{
			results:    f.NewCounterVec(prometheus.CounterOpts(opts("results_total", "Results of attempts to deliver a message.")), []string{"notifier", "outcome"}),
			suppressed: f.NewCounter(prometheus.CounterOpts(opts("suppressed_total", "Messages that were suppressed by rates and quiet hours."))),
			waiting:    f.NewGauge(prometheus.GaugeOpts(opts("waiting", "Messages that wait to be delivered."))),
		},
	}
	b.holder, b.database = cmp.Or(deps.Owner, uuid.NewString()), dbclock.New(d)
	messages := &queue{b}
	return &Service{
		base: b, queue: messages, composer: &composer{base: b, templates: map[string]*Template{}},
		sender: &sender{base: b, queue: messages, lanes: newLanes(b.clock)},
	}, nil
}

// Erase deletes the notifications about events of distinct ids: waiting ones, the
// log of settled ones, and suppressed ones. It returns their number. A call of a
// notifier that is under way is not recalled, and not repeated.
func (s *Service) Erase(ctx context.Context, projectID int64, distinctIDs []string) (int64, error) {
	// The suppressed ones first: a summary that is queued meanwhile moves one of them to the
	// waiting ones.
	suppressed, err := s.store.eraseSuppressed(ctx, projectID, distinctIDs)
	if err != nil {
		return suppressed, err
	}
	n, err := s.store.erase(ctx, projectID, distinctIDs)
	return n + suppressed, err
}

// Start starts the delivery.
func (s *Service) Start(context.Context) error {
	s.sender.start()
	return nil
}

// Stop waits for the calls that are under way, and cancels them when ctx ends
// first. Unconfirmed notifications are sent again, under the same id, after the
// next start.
func (s *Service) Stop(ctx context.Context) error { return s.sender.background.Stop(ctx) }

func (s *base) clock() time.Time {
	if s.deps.Now != nil {
		return s.deps.Now().UTC().Truncate(time.Microsecond)
	}
	return s.database.Now().Truncate(time.Microsecond)
}

// project returns the name and the time zone of a project; without a name and in
// UTC if it cannot be read.
func (s *base) project(ctx context.Context, id int64) (name string, loc *time.Location) {
	p, err := s.deps.Projects.Project(ctx, id)
	if err != nil {
		return "", time.UTC
	}
	return p.Name, p.Location()
}

// wake signals a due notification. It never blocks.
func (s *base) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// CheckFormat returns nil for a valid format, or an Invalid fault with the
// attr chat_message_format.
func (s *Service) CheckFormat(format string) error {
	_, err := s.composer.template(format)
	return err
}

// HasNotifier reports whether a notifier with this name is configured.
func (s *Service) HasNotifier(name string) bool { return s.find(name) != nil }

func (s *base) find(name string) Notifier {
	for _, n := range s.deps.Notifiers.Notifiers() {
		if n.Name() == name {
			return n
		}
	}
	return nil
}

// destinations are the receivers of an action: its own, else those of the
// config, else every notifier.
func (s *base) destinations(a *actions.Action) []actions.Destination {
	if len(a.Destinations) > 0 {
		return a.Destinations
	}
	var out []actions.Destination
	for _, name := range s.cfg.Destinations {
		out = append(out, actions.Destination{Notifier: name})
	}
	if len(out) > 0 {
		return out
	}
	for _, n := range s.deps.Notifiers.Notifiers() {
		out = append(out, actions.Destination{Notifier: n.Name()})
	}
	return out
}

func (s *base) projectURL(id int64) string {
	return (&Facts{Site: strings.TrimSuffix(s.cfg.SiteURL, "/"), ProjectID: id}).project()
}
