package app

import (
	"context"
	"strconv"
	"time"

	"github.com/guidonhq/guidon/app/requestlog"
	"github.com/guidonhq/guidon/core/clients"
	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/cohorts"
	"github.com/guidonhq/guidon/core/console"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/delivery/bypartition"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/trace"

	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/accounts"
	"github.com/guidonhq/guidon/core/accounts/invitation"
	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/activity/chain"
	"github.com/guidonhq/guidon/core/admin"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/backup/schedule"
	"github.com/guidonhq/guidon/core/config/live"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/eventapi"
	"github.com/guidonhq/guidon/core/flagapi"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/flags/audience"
	"github.com/guidonhq/guidon/core/flags/continuity"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/revision"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/notifications"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/propertyvalues"
	"github.com/guidonhq/guidon/core/roles"
	"github.com/guidonhq/guidon/core/standby"
	"github.com/guidonhq/guidon/core/web"
)

// bindings connects modules. A module that needs another one declares a small
// interface beside its use; the bindings name the type that implements it.
func bindings(has roles.Set) fx.Option {
	workers, jobs := roles.Workers(), []string{roles.Process}
	return fx.Options(coreBindings, activityBindings(has), changeBindings, has.Only(workers, erasureBindings), has.Only(workers, actionBindings),
		has.Only(jobs, notificationBindings), definitionBindings, operatorBindings, visitorBindings, has.Only(jobs, dataBindings), fx.Invoke(addHooks),
		fx.Invoke(func(*activity.Retention, *chain.Sealer) {}),
		fx.Invoke(func(n *notifications.Service, v *live.Value[notifications.Config]) { n.Follow(v) }))
}

// activityBindings keep the activity log. A server that only takes events in adds the
// refused keys to it.
func activityBindings(has roles.Set) fx.Option {
	return fx.Options(
		has.Only(roles.Writers(), fx.Provide(fx.Annotate(activity.NewCounter, fx.OnStart((*activity.Counter).Start), fx.OnStop((*activity.Counter).Stop)))),
		has.Only(roles.Workers(), fx.Provide(
			fx.Annotate(chain.NewSealer, fx.OnStart((*chain.Sealer).Start), fx.OnStop((*chain.Sealer).Stop)),
			fx.Annotate(activity.NewRetention, fx.OnStart((*activity.Retention).Start), fx.OnStop((*activity.Retention).Stop)),
		)),
	)
}

var coreBindings = fx.Provide(
	// The web server authenticates requests against the accounts, and against the
	// snapshot while the database is away.
	func(a *standby.Auth) web.Auth { return a },
	route(func(s *standby.Service) web.Routes { return standby.NewHTTP(s) }),

	// Browsers load the library together with the config of their project.
	func(h *decide.HTTP) clients.RemoteConfig { return h },

	// Flags have no quota.
	func() decide.Quota { return nil },

	// Requests about several flags.
	route(func(s *flags.Service, c *cohorts.Service, n *audience.Counter, a *auth.Service) web.Routes {
		return flagapi.NewHTTP(s, c, n, a)
	}),

	// Persons show when they were last seen.
	func(e *events.Service) persons.LastSeen { return e },
	func(e *events.Service) persons.Relations { return relations{e} },
	func(h *persons.HTTP) cohorts.PersonViews { return h },

	// The worker filters duplicates with the event store.
	func(e *events.Service) (pipeline.Deduplicator, trace.EventReader) { return e, e },
	func(h *host.Host) (delivery.Sinks, bypartition.Sinks) { s := newSinks(h); return s, s },
	stages,
	storedData,

	// Accounts list the flags of a role.
	func(s *flags.Store) accounts.Flags { return s },
	accounts.NewHTTP, invitation.NewService,
	activity.NewAudit, activity.NewLog, activity.NewHTTP, chain.New,

	func(r *reloader) admin.Reload {
		return admin.Reload{
			Apply:   func(ctx context.Context, who *auth.Principal) (any, error) { return r.Reload(ctx, who) },
			Preview: func() (any, error) { return r.Preview() },
		}
	},

	// Routes.
	route(func(h *accounts.HTTP) web.Routes { return h }),
	route(func(s *invitation.Service, c console.Served) web.Routes { return invitation.NewHTTP(s, bool(c)) }),
	route(func(h *activity.HTTP) web.Routes { return h }),
	func(l *requestlog.Log) admin.Log { return l },
	func(p ingestion.Processing) admin.Processing { return p },
	route(func(r *admin.Readiness) web.Routes { return r }),
	route(func(s *schedule.Scheduler) web.Routes { return backupReadiness{s} }),
	route(func(p *admin.Plugins) web.Routes { return p }),
	route(func(h *eventapi.HTTP) web.Routes { return h }),
	route(func(m cluster.Member, l eventlog.Log, p admin.Public) web.Routes { return admin.NewCluster(m, l, p) }),
	route(func(h *admin.Health) web.Routes { return h }),
	route(func(h *persons.HTTP) web.Routes { return h }),
	route(propertyvalues.NewRoutes),
)

func route(constructor any) any { return fx.Annotate(constructor, fx.ResultTags(`group:"routes"`)) }

// addHooks registers the packages that keep data of a person: they move or
// delete it in the transaction that merges or deletes the person.
func addHooks(p *persons.Service, f *continuity.Store, r *revision.Store, c *cohorts.Store, e *events.Service) {
	p.OnMerge(f.MergePersons)
	p.Groups.OnTypesChanged(r.Touch)
	p.OnDelete(f.DeletePerson)
	p.OnDeleteIDs(c.Erase)
	p.OnErase(e.Erase)
	p.OnMerge(e.PersonsMerged)
	p.OnDelete(e.PersonDeleted)
}

// relations finds related persons and groups in the event store.
type relations struct{ events *events.Service }

// RelatedToPerson implements persons.Relations.
func (r relations) RelatedToPerson(ctx context.Context, projectID, personID int64, after time.Time) (persons.RelatedKeys, error) {
	found, err := r.events.Related(ctx, projectID, events.Member{PersonID: strconv.FormatInt(personID, 10)}, after)
	return persons.RelatedKeys(found), err
}

// RelatedToGroup implements persons.Relations.
func (r relations) RelatedToGroup(ctx context.Context, projectID int64, index int, key string, after time.Time) (persons.RelatedKeys, error) {
	found, err := r.events.Related(ctx, projectID, events.Member{TypeIndex: index, Key: key}, after)
	return persons.RelatedKeys(found), err
}
