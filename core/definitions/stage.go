package definitions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/sdk"
)

// Groups reads the group types of projects. It is called in the worker's
// transaction, after the group types of the batch were created.
type Groups interface {
	// GroupTypes returns the index of each group type by its name.
	GroupTypes(ctx context.Context, projectID int64) (map[string]int, error)
}

// CopiedNames returns the names under which a property of an event is copied
// to its person.
type CopiedNames func(property string) []string

// Users reads users.
type Users interface {
	// UsersByID returns the users that exist.
	UsersByID(ctx context.Context, ids []int64) (map[int64]auth.User, error)
}

// Dependencies are what the service uses; each may be nil.
type Dependencies struct {
	Groups      Groups
	CopiedNames CopiedNames
	Users       Users
}

// Service keeps the definitions of all projects. It is safe for concurrent
// use.
type Service struct {
	cfg     Config
	deps    Dependencies
	store   store
	refused *prometheus.CounterVec // by type of warning

	mu    sync.Mutex // guards cache; held during one batch
	cache nameCache
}

// New returns a Service. reg may be nil.
func New(cfg Config, d *db.DB, deps Dependencies, reg prometheus.Registerer) *Service {
	return &Service{
		cfg: cfg, deps: deps, store: store{d},
		refused: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Namespace: "guidon", Subsystem: "definitions", Name: "refused_total",
			Help: "Names in events that got no definition.",
		}, []string{"reason"}),
	}
}

// Process records the names in a batch and returns a warning for each project
// with more names than its limit. It joins the transaction in ctx, or writes in
// one of its own.
func (s *Service) Process(ctx context.Context, batch []*sdk.Event) ([]Warning, error) {
	w, err := s.collect(ctx, batch)
	if err != nil {
		return nil, err
	}
	for n, indexes := range w.groupTypes {
		s.store.db.AfterCommit(ctx, func() { s.rememberGroupTypes(n, indexes) })
	}
	if len(w.pending) == 0 {
		return w.warnings(), nil
	}
	err = s.store.db.Tx(ctx, func(ctx context.Context) error {
		s.store.db.AfterCommit(ctx, func() { s.remember(w.pending) })
		return s.store.upsert(ctx, w.pending)
	})
	if err != nil {
		return nil, fmt.Errorf("write definitions: %w", err)
	}
	return w.warnings(), nil
}

// collect collects the names of a batch that have to be written. It holds the
// lock of the cache only while it runs, because the functions after the commit
// take the lock again: without a transaction in ctx they run within Process.
func (s *Service) collect(ctx context.Context, batch []*sdk.Event) (collector, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.dropIfFull()
	w := collector{Service: s, ctx: ctx}
	for _, ev := range batch {
		if err := w.addEvent(ev); err != nil {
			return w, err
		}
	}
	return w, nil
}

// remember adds written names to the cache.
func (s *Service) remember(news map[key]*pendingName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, n := range news {
		s.cache.put(k, n.nameState)
	}
}

// collector collects the new names of one batch.
type collector struct {
	*Service
	ctx      context.Context
	pending  map[key]*pendingName
	newNames map[limitKey]int // number of pending names without definition
	refusals map[refusalKey]*refusal
	project  int64
	names    *projectNames // of project

	groupTypes map[*projectNames]map[string]int // read in this batch

	at int64 // the event's rounded time
	ev *sdk.Event
}

// limitKey is the scope of a limit.
type limitKey struct {
	project int64
	kind    Kind
}

// pendingName is a name to be written.
type pendingName struct {
	nameState
	created int64
}

func (w *collector) addEvent(ev *sdk.Event) error {
	if w.names == nil || w.project != ev.ProjectID {
		n, err := w.namesOf(ev.ProjectID)
		if err != nil {
			return err
		}
		w.project, w.names = ev.ProjectID, n
	}
	every := int64(w.cfg.LastSeenEvery / time.Second)
	w.ev, w.at = ev, ev.ReceivedAt.Unix()/every*every
	if m, ok := w.names.byKind[Event][ev.Name]; !ok || m.at < w.at {
		w.addName(Event, noGroup, ev.Name, "", m, ok)
	}
	return w.addProperties(ev)
}

// namesOf returns the cached names of a project, and reads them from the store
// first if needed.
func (w *collector) namesOf(projectID int64) (*projectNames, error) {
	if n := w.cache.projects[projectID]; n != nil {
		return n, nil
	}
	n := newProjectNames()
	if err := w.store.load(w.ctx, projectID, n); err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	w.cache.add(projectID, n)
	return n, nil
}

// addProperties adds the properties of an event and those that it sets.
func (w *collector) addProperties(ev *sdk.Event) error {
	group := ""
	for c, _ := jsontext.OpenObject(jsontext.View(ev.Properties)); c.Next(); {
		name, value := c.Key, c.Value
		if strings.HasPrefix(name, "$") {
			switch name {
			case "$set", "$set_once":
				w.addMembers(PersonProperty, noGroup, value)
				continue
			case "$group_set":
				group = value
				continue
			case "$unset", "$groups", "$group_type", "$group_key":
				continue
			}
		}
		w.addProperty(EventProperty, noGroup, name, value)
	}
	if group == "" || ev.Name != "$groupidentify" {
		return nil
	}
	return w.addGroupProperties(ev, group)
}

// addMembers adds the members of an object.
func (w *collector) addMembers(kind Kind, group int, object string) {
	for c, _ := jsontext.OpenObject(object); c.Next(); {
		w.addProperty(kind, group, c.Key, c.Value)
	}
}

// addProperty adds one property. Usually it is known and nothing is written.
func (w *collector) addProperty(kind Kind, group int, name, value string) {
	known := w.names.byKind[kind]
	if kind == GroupProperty {
		known = w.names.groups[group]
	}
	m, ok := known[name]
	if ok && m.at >= w.at && (m.typed || !hasType(value)) {
		return
	}
	w.addName(kind, group, strings.Clone(name), value, m, ok) // name is a part of the event
}

// hasType reports whether a value determines a type.
func hasType(value string) bool {
	return len(value) > 0 && value[0] != '{' && value[0] != '[' && value[0] != 'n'
}

// groupTypeOf returns the name of the group type of a $groupidentify event, or
// false without one.
func groupTypeOf(ev *sdk.Event) (string, bool) {
	var of struct {
		Type json.RawMessage `json:"$group_type"`
	}
	if json.Unmarshal(ev.Properties, &of) != nil || len(of.Type) == 0 {
		return "", false
	}
	name := string(of.Type)
	if of.Type[0] == '"' && json.Unmarshal(of.Type, &name) != nil {
		return "", false
	}
	return name, true
}

// addGroupProperties adds the properties of a group.
func (w *collector) addGroupProperties(ev *sdk.Event, set string) error {
	if w.deps.Groups == nil {
		return nil
	}
	name, ok := groupTypeOf(ev)
	if !ok {
		return nil
	}
	index, ok := w.names.indexes[name]
	if !ok {
		indexes, err := w.deps.Groups.GroupTypes(w.ctx, ev.ProjectID)
		if err != nil {
			return fmt.Errorf("look for group types: %w", err)
		}
		if index, ok = indexes[name]; !ok {
			return nil // beyond the limit of group types
		}
		// Cached after the commit only: the transaction that created it may fail.
		if w.groupTypes == nil {
			w.groupTypes = make(map[*projectNames]map[string]int)
		}
		w.groupTypes[w.names] = indexes
	}
	w.addMembers(GroupProperty, index, set)
	return nil
}

func (s *Service) rememberGroupTypes(n *projectNames, indexes map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.indexes = indexes
}

// addName adds a name to the pending ones, unless the project has reached its
// limit.
func (w *collector) addName(kind Kind, group int, name, value string, m nameState, known bool) {
	k := key{project: w.project, kind: kind, group: group, name: name}
	if n := w.pending[k]; n != nil {
		n.at = max(n.at, w.at)
		if n.propertyType == "" {
			n.setType(typeOf(name, value))
		}
		return
	}
	if !known {
		c := limitKey{w.project, kind}
		switch {
		case name == "":
			return
		case len(name) > maxName:
			w.refuseName(NameTooLong, kind, name[:100])
			return
		case w.names.count[kind]+w.newNames[c] >= w.cfg.limit(kind):
			w.refuseName(limitOf(kind), kind, name)
			return
		}
		if w.newNames == nil {
			w.newNames = make(map[limitKey]int)
		}
		w.newNames[c]++
	}
	if w.pending == nil {
		w.pending = make(map[key]*pendingName)
	}
	n := &pendingName{nameState: nameState{at: max(m.at, w.at), propertyType: m.propertyType, typed: m.typed}, created: w.ev.ReceivedAt.UnixMicro()}
	if !n.typed {
		n.setType(typeOf(name, value))
	}
	w.pending[k] = n
	if kind == EventProperty && !known && w.deps.CopiedNames != nil && !bytes.Contains(w.ev.Properties, personless) {
		for _, copied := range w.deps.CopiedNames(name) {
			w.addProperty(PersonProperty, noGroup, copied, value)
		}
	}
}

// personless occurs in events that change no person.
var personless = []byte(`"$process_person_profile":false`)

func limitOf(k Kind) string {
	if k == Event {
		return TooManyEvents
	}
	return TooManyProperties
}
