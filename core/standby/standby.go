// Package standby lets a server work while its PostgreSQL database is away,
// also when it starts then.
//
// While the database is ready, Service writes a snapshot to the data directory:
// projects, digests of keys, and the definitions of
// flags, cohorts and group types. It is written within seconds of a change and
// confirmed every few minutes. At a start without the database it is read back:
// project keys are recognized, so capture goes into the journal, and flags are
// decided and handed out for local evaluation. Personal keys read definitions for
// local evaluation and stand for their project on public paths; management refuses
// them.
//
// The file never contains a key. It is replaced atomically and readable by its
// owner only; a file with a wrong checksum, of another version, of the future or
// older than the maximum age is ignored. What was revoked after the snapshot was
// confirmed is accepted until the database is back or the snapshot is too old. A
// key with an end expires at that moment. A snapshot that is too old is no longer
// used: without keys its flags are not served either.
//
// SQLite needs none of this: its file is as near as the snapshot.
package standby

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/retry"
)

const (
	fileName     = "standby.snapshot"
	pollInterval = 2 * time.Second
	// confirmInterval is the longest time between two writes of an unchanged
	// snapshot.
	confirmInterval = 5 * time.Minute
)

// Config bounds the use of snapshots.
type Config struct {
	// MaxAge is the age at which a snapshot is no longer used; 0 writes and
	// reads none.
	MaxAge time.Duration `koanf:"max_age"`
}

// DefaultConfig uses snapshots for a day.
func DefaultConfig() Config { return Config{MaxAge: 24 * time.Hour} }

// Validate reports an age that cannot be meant.
func (c Config) Validate() error {
	if c.MaxAge < 0 || c.MaxAge > 0 && c.MaxAge < 2*confirmInterval {
		return fmt.Errorf("max_age must be 0 or at least %s, got %s", 2*confirmInterval, c.MaxAge)
	}
	return nil
}

// Service writes the snapshot and answers from it.
type Service struct {
	cfg      Config
	path     string
	db       *db.DB
	store    store
	accounts *auth.Service
	flags    *decide.LastKnown
	log      *zap.Logger
	now      func() time.Time
	service  retry.Service

	current atomic.Pointer[index]
	loaded  atomic.Bool // current comes from the file
	version int64       // of the accounts in the file
	changes uint64      // of the flags in the file
}

// NewService returns a service for the data directory dir. If the database is
// not ready it reads the snapshot, so that flags has its definitions before
// they are compiled.
func NewService(cfg Config, dir db.DataDir, d *db.DB, accounts *auth.Service, flags *decide.LastKnown, log *zap.Logger) *Service {
	s := &Service{cfg: cfg, path: filepath.Join(string(dir), fileName), db: d, store: store{d}, accounts: accounts, flags: flags, log: log.Named("standby"), now: time.Now, version: -1}
	if s.enabled() && !d.IsReady() {
		s.load()
	}
	return s
}

// enabled reports whether the server keeps a snapshot.
func (s *Service) enabled() bool { return s.db.Postgres() && s.cfg.MaxAge > 0 }

// load reads the snapshot on disk.
func (s *Service) load() {
	c, err := readFile(s.path, s.now(), s.cfg.MaxAge)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.log.Warn("no snapshot on disk: waiting for the database")
		return
	case err != nil:
		s.log.Warn("snapshot on disk ignored: waiting for the database", zap.String("path", s.path), zap.Error(err))
		return
	}
	s.current.Store(newIndex(c))
	s.loaded.Store(true)
	s.flags.Restore(c.definitions())
	s.log.Warn("serving from the snapshot on disk until the database is ready", zap.Time("taken_at", c.TakenAt),
		zap.Int("projects", len(c.Projects)), zap.Int("projects_with_flags", len(c.Flags)))
}

// Start writes snapshots until Stop, once the database is ready.
func (s *Service) Start(context.Context) error {
	if !s.enabled() {
		return nil
	}
	s.service.Start()
	s.service.Go(func(ctx, _ context.Context) {
		if !s.db.WaitReady(ctx) {
			return
		}
		failing := false
		for {
			err := s.update(ctx)
			if err != nil && !failing && ctx.Err() == nil {
				s.log.Warn("snapshot not written", zap.Error(err))
			}
			failing = err != nil
			if !retry.Sleep(ctx, pollInterval) {
				return
			}
		}
	})
	return nil
}

// Stop ends the writing.
func (s *Service) Stop(ctx context.Context) error { return s.service.Stop(ctx) }

// update writes a snapshot if something has changed or the last one was not
// confirmed for a while. Otherwise it confirms the one in memory.
func (s *Service) update(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	now := s.now().UTC()
	version, err := s.store.version(ctx)
	if err != nil {
		return err
	}
	old := s.current.Load()
	if version == s.version && s.flags.Changes() == s.changes && !s.loaded.Load() {
		if now.Sub(old.content.TakenAt) < confirmInterval {
			old.confirmedAt.Store(now.UnixNano())
			return nil
		}
	}
	c, changes, err := s.take(ctx, now)
	if err != nil {
		return err
	}
	if err := writeFile(s.path, c); err != nil {
		return err
	}
	s.current.Store(newIndex(c))
	s.loaded.Store(false)
	s.version, s.changes = version, changes
	return nil
}

// take reads the content of a snapshot.
func (s *Service) take(ctx context.Context, now time.Time) (*content, uint64, error) {
	projects, err := s.accounts.Projects(ctx, "")
	if err != nil {
		return nil, 0, err
	}
	c := &content{TakenAt: now, Projects: projects, Flags: map[int64]definitions{}}
	if c.ProjectKeys, err = s.store.projectKeys(ctx); err != nil {
		return nil, 0, err
	}
	if c.PersonalKeys, err = s.store.personalKeys(ctx); err != nil {
		return nil, 0, err
	}
	secrets, err := s.store.secretKeys(ctx)
	if err != nil {
		return nil, 0, err
	}
	c.PersonalKeys = append(c.PersonalKeys, secrets...)
	all, changes := s.flags.All()
	for id, d := range all {
		c.Flags[id] = definitions{Flags: d.Flags, Cohorts: d.Cohorts, GroupTypes: d.GroupTypes}
	}
	return c, changes, nil
}

// Status is the state of the database for readiness.
type Status struct {
	db.Condition

	// Snapshot is the time of the snapshot that replaces a database that is away,
	// UsableUntil the end of its use.
	Snapshot    *time.Time `json:"snapshot_taken_at,omitempty"`
	UsableUntil *time.Time `json:"snapshot_usable_until,omitempty"`
}

// Status returns the state, and whether the server can serve clients. A server
// that lost its database can: it has what it needs in memory.
func (s *Service) Status() (Status, bool) {
	st := Status{Condition: s.db.Condition()}
	if st.State != "waiting" && st.State != "lost" {
		return st, true
	}
	i := s.usable()
	if i == nil {
		if st.State == "waiting" {
			st.Message += "; there is no snapshot to serve from"
		}
		return st, st.State == "lost"
	}
	until := time.Unix(0, i.confirmedAt.Load()).Add(s.cfg.MaxAge).UTC()
	st.Snapshot, st.UsableUntil = &i.content.TakenAt, &until
	if st.State == "waiting" {
		st.Message += ", serving from the snapshot of " + i.content.TakenAt.Format(time.RFC3339)
	}
	return st, true
}

// usable returns the snapshot unless it is too old.
func (s *Service) usable() *index {
	i := s.current.Load()
	if i == nil || s.now().Sub(time.Unix(0, i.confirmedAt.Load())) > s.cfg.MaxAge {
		return nil
	}
	return i
}

// definitions of the flags of one project.
type definitions struct {
	Flags      []eval.Definition       `json:"flags"`
	Cohorts    []eval.CohortDefinition `json:"cohorts"`
	GroupTypes map[string]int          `json:"group_types"`
}

func digestOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
