package flags

import (
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/cohorts"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/flagcalls"
	"github.com/guidonhq/guidon/core/flags/access"
	"github.com/guidonhq/guidon/core/flags/audience"
	"github.com/guidonhq/guidon/core/flags/calls"
	"github.com/guidonhq/guidon/core/flags/callseries"
	"github.com/guidonhq/guidon/core/flags/continuity"
	"github.com/guidonhq/guidon/core/flags/dashboards"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/listing"
	"github.com/guidonhq/guidon/core/flags/local"
	"github.com/guidonhq/guidon/core/flags/ofrep"
	"github.com/guidonhq/guidon/core/flags/revision"
	"github.com/guidonhq/guidon/core/flags/schedule"
	"github.com/guidonhq/guidon/core/flags/sealed"
	"github.com/guidonhq/guidon/core/flags/source"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web"
)

// Module provides the evaluation and management of flags and cohorts, and keeps
// snapshots current while the server runs. app provides the operators of plugins
// (PluginOperators, decide.Matchers, match.Registry) and the quota.
var Module = fx.Module("flags",
	fx.Provide(
		func(c Config) (decide.Config, ManageConfig) { return c.Config, c.with(c.Config) },
		NewStore, continuity.NewStore, cohorts.NewStore, dashboards.NewStore, calls.NewStore, revision.NewStore,
		func(s *revision.Store, memory *decide.Snapshots, log *zap.Logger) *revision.Writer {
			return revision.NewWriter(s, memory, log)
		},
		newSource,
		fx.Annotate(newSnapshots, fx.OnStart((*decide.Snapshots).Start), fx.OnStop((*decide.Snapshots).Stop)),
		fx.Annotate(newLookups, fx.ParamTags(``, ``, ``, ``, `optional:"true"`, `optional:"true"`)), decide.NewDecider,
		newPolicy, newCounter, newDashboards, newCohorts, newService,
		fx.Annotate(newMembers, fx.OnStart((*cohorts.Members).Start), fx.OnStop((*cohorts.Members).Stop)),
		func(s *calls.Store, w *revision.Writer, p *persons.Service) *calls.Stage {
			return calls.NewStage(s, w, p)
		},
		callseries.NewStore, func(s *callseries.Store, d *db.DB, e *events.Service) *callseries.Service {
			return callseries.New(s, flagcalls.New(d, e), time.Now)
		}, route(callseries.NewHTTP),
		decide.NewHTTP, route(func(h *decide.HTTP) *decide.HTTP { return h }),
		route(ofrep.NewHTTP), route(newLocalHTTP), route(newListingHTTP), route(dashboards.NewHTTP), route(cohorts.NewHTTP), route(NewHTTP),
	),
)

// Schedule makes the scheduled changes of flags while the server runs.
var Schedule = fx.Module("schedule", fx.Provide(
	schedule.NewStore,
	fx.Annotate(func(s *schedule.Store, f *Service, a *auth.Service, log *zap.Logger) *schedule.Service {
		return schedule.NewService(s, f, a, log)
	}, fx.OnStart((*schedule.Service).Start), fx.OnStop((*schedule.Service).Stop)),
	route(schedule.NewHTTP),
))

// PluginOperators are the operators of plugins for management and cohorts.
type PluginOperators struct {
	ForSave match.Registry          // known operators, also of stopped plugins
	Round   func() eval.PluginRound // a new round, for one page or one answer
}

func route(constructor any) any {
	return fx.Annotate(constructor, fx.As(new(web.Routes)), fx.ResultTags(`group:"routes"`))
}

func newSource(s *Store, c *cohorts.Store, r *revision.Store, p *persons.Service, a *auth.Service) (*source.Definitions, *decide.LastKnown, decide.Source) {
	d := source.New(s, c, r, p, a)
	known := decide.NewLastKnown(d)
	return d, known, known
}

// knownPeople are the properties that the cache of persons has, of any age.
type knownPeople struct{ persons *persons.Service }

func (k knownPeople) LastProperties(projectID int64, distinctID string) (decide.Known, bool) {
	p, ok := k.persons.LastProperties(projectID, distinctID)
	return decide.Known(p), ok
}

func (k knownPeople) LastGroupProperties(projectID int64, groupType, groupKey string) (decide.Known, bool) {
	p, ok := k.persons.LastGroupProperties(projectID, groupType, groupKey)
	return decide.Known(p), ok
}

func newLookups(p *persons.Service, c *cohorts.Store, s *continuity.Store, m decide.Matchers, l decide.Locator, v decide.Visitors) decide.Lookups {
	return decide.Lookups{People: p, Known: knownPeople{p}, Memberships: c, HashKeys: s, Matchers: m, Locator: l, Visitors: v}
}

func newPolicy(a *auth.Service, s *Store) *access.Policy { return access.NewPolicy(a, s) }

func newCounter(c ManageConfig, d *source.Definitions, p *persons.Service, lists *cohorts.Store, s *continuity.Store, o PluginOperators) *audience.Counter {
	return audience.New(c.CountBudget, audience.Dependencies{
		Persons: p, Groups: p.Groups, Source: d, StaticCohorts: lists, HashKeys: s, Operators: o.ForSave, Plugins: o.Round,
		Limits: c.Patterns, Budget: c.Budget,
	})
}

func newDashboards(store *dashboards.Store, w *revision.Writer, s *Store, a *auth.Service, p *access.Policy, e *events.Service, log *zap.Logger) *dashboards.Service {
	return dashboards.NewService(store, dashboards.Dependencies{Revisions: w, Flags: s, Users: a, Access: p, Events: e, Log: log})
}

func newCohorts(c ManageConfig, m *decide.Snapshots, store *cohorts.Store, w *revision.Writer, d *db.DB, a *auth.Service, s *Store, p *access.Policy, n *audience.Counter, people *persons.Service, o PluginOperators) *cohorts.Service {
	return cohorts.NewService(cohorts.Config{Limits: c.Limits(), Members: c.CohortMembers}, store, cohorts.Dependencies{
		Revisions: w, Activity: activity.NewLog(d), Users: a, Access: p, Flags: s, Counter: n, People: people, Operators: o.ForSave, Sets: m,
	})
}

func newSnapshots(c decide.Config, from decide.Source, operators match.Registry, d *db.DB, log *zap.Logger) (*decide.Snapshots, error) {
	s, err := decide.NewSnapshots(c, from, operators, log)
	if err == nil {
		s.WakeBy(d.Wakes.Flags.Follow())
	}
	return s, err
}

func newMembers(c ManageConfig, from *db.DB, d *source.Definitions, lists *cohorts.Store, p *persons.Service, registry match.Registry, o PluginOperators, log *zap.Logger) *cohorts.Members {
	return cohorts.NewMembers(cohorts.MembersDependencies{
		Source: d, Lists: lists, People: p, Operators: registry, Plugins: o.Round, Log: log,
		Limits: c.Patterns, Budget: c.Budget, Wake: from.Wakes.Flags.Follow(),
	})
}

func newService(c ManageConfig, m *decide.Snapshots, definitions *source.Definitions, store *Store, hashKeys *continuity.Store, w *revision.Writer, lists *cohorts.Store, ds *dashboards.Service, n *audience.Counter, a *auth.Service, o PluginOperators, dir db.DataDir) (*Service, error) {
	keys, err := sealed.Load(string(dir), c.EncryptionKey)
	if err != nil {
		return nil, err
	}
	return NewService(c, store, Dependencies{
		Revisions: w, Cohorts: lists, HashKeys: hashKeys, Dashboards: ds, Payloads: keys, Audience: n, Users: a, Roles: a, Operators: o.ForSave, Sets: m, Definitions: definitions,
	})
}

func newLocalHTTP(c decide.Config, s *decide.Snapshots, source decide.Source, operators match.Registry) *local.HTTP {
	return local.NewHTTP(s, source, local.Options{Operators: operators, MinimalEvents: c.MinimalFlagCalledEvents})
}

func newListingHTTP(s *decide.Snapshots, known *decide.LastKnown) *listing.HTTP {
	return listing.NewHTTP(s, known)
}
