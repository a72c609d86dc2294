// Package pluginconfig stores plugin instances that are configured with the API, beside
// those of the config file.
//
// An instance of the API runs a bundled plugin. Its config is in the database; the secrets
// in it are encrypted with the keys of the server and never shown again. The file has
// precedence: the API cannot change an instance that the file names, or any instance with
// plugins.managed_by: file.
//
// The paths in such a config lie in one directory (paths.go), so that an operator in a browser
// reads and writes no other files of the server.
//
// Instances merges both and passes the result to the host as a reload of the file does: if
// a new config fails, the instance keeps its previous process, and other instances are
// unaffected.
// Each node reads the table when it starts, when another node wakes it and, on Postgres,
// every few seconds.
package pluginconfig

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/flags/sealed"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/host/status"
	"github.com/guidonhq/guidon/core/retry"
)

// interval is the time between two looks at the table, where others may change it.
const interval = 5 * time.Second

// Plugins describes the bundled plugins.
type Plugins struct {
	Names []string
	// Schema returns the JSON Schema of the config of a plugin used as a kind, or nil.
	Schema func(name, kind string) []byte
}

// Keys returns the keys for secrets. With create it makes one if there is none.
type Keys func(create bool) (*sealed.Keyring, error)

// Service keeps the configuration. Its methods are safe for concurrent use.
type Service struct {
	store     store
	instances *Instances
	plugins   Plugins
	keys      Keys
	audit     *activity.Audit
	log       *zap.Logger
	dir       string // of the data
	files     filesDir

	background retry.Service
	behind     atomic.Bool // the last refresh has failed

	mu   sync.Mutex // one refresh at a time
	last []record   // what the instances have
	read bool
}

// New returns a service for the data directory dir. Nothing runs before Start.
func New(d *db.DB, dir string, i *Instances, p Plugins, keys Keys, audit *activity.Audit, log *zap.Logger) *Service {
	if p.Schema == nil {
		p.Schema = func(string, string) []byte { return nil }
	}
	return &Service{store: store{d}, dir: dir, files: newFilesDir(dir), instances: i, plugins: p, keys: keys, audit: audit, log: log.Named("pluginconfig")}
}

// Start starts the stored instances, and follows changes of the table until Stop.
func (s *Service) Start(ctx context.Context) error {
	ready := s.store.db.IsReady()
	if ready {
		if err := s.refresh(ctx); err != nil {
			return fmt.Errorf("start the plugins of the API: %w", err)
		}
	} else if err := s.restore(ctx); err != nil {
		s.log.Warn("stored plugins not started: database unavailable", zap.Error(err))
	}
	s.background.Start()
	if ready && !s.store.db.Postgres() {
		// Nothing else writes: only what was stored and not applied is to do.
		s.background.Every(interval, func(ctx context.Context) {
			if s.behind.Load() {
				s.follow(ctx)
			}
		})
		return nil
	}
	s.background.EveryOr(interval, s.store.db.Wakes.Plugins.Follow(), func(ctx context.Context) {
		if s.store.db.IsReady() {
			s.follow(ctx)
		}
	})
	return nil
}

func (s *Service) follow(ctx context.Context) {
	if err := s.refresh(ctx); err != nil && ctx.Err() == nil {
		s.log.Warn("plugin config refresh failed", zap.Error(err))
	}
}

// Stop ends the following.
func (s *Service) Stop(ctx context.Context) error { return s.background.Stop(ctx) }

// refresh passes the stored configurations to the instances, if they have changed.
func (s *Service) refresh(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.behind.Store(err != nil) }()
	records, err := s.store.all(ctx)
	if err != nil {
		return err
	}
	if s.read && slices.EqualFunc(records, s.last, record.same) {
		return nil
	}
	if err := s.apply(ctx, records); err != nil {
		return err
	}
	s.last, s.read = records, true
	if err := s.keep(records); err != nil {
		s.log.Warn("plugin config cache write failed", zap.Error(err))
	}
	return nil
}

// restore passes what the node had last to the instances.
func (s *Service) restore(ctx context.Context) error {
	records, err := s.kept()
	if err != nil || len(records) == 0 {
		return err
	}
	return s.apply(ctx, records)
}

func (s *Service) apply(ctx context.Context, records []record) error {
	var stored []settings.Instance
	var invalid []status.Status
	for _, r := range records {
		one := s.instanceOf(r)
		err := valid(one)
		if err == nil {
			one.Config, err = s.withPaths(one)
		}
		if err != nil {
			s.log.Error("stored plugin config invalid: instance not started", zap.String("instance", r.Name), zap.Error(err))
			invalid = append(invalid, status.Status{
				Name: r.Name, Kind: r.Kind, Use: r.Plugin, State: lifecycle.StateMisconfigured, Reason: "not_valid", Since: time.Now().UTC(),
				LastError: "The stored config is not valid with this version; configure it again: " + err.Error(),
			})
			continue
		}
		stored = append(stored, one)
	}
	s.instances.setInvalid(invalid)
	return s.instances.setStored(ctx, stored)
}

// instanceOf returns the settings of a record. An instance whose secrets cannot be opened
// is refused by the host with the reason; the others are not affected.
func (s *Service) instanceOf(r record) settings.Instance {
	secrets, err := s.open(r)
	if err != nil {
		s.log.Error("plugin secrets decryption failed", zap.String("instance", r.Name), zap.Error(err))
	}
	config, err := decode([]byte(r.Config))
	if err != nil {
		s.log.Error("plugin config decode failed", zap.String("instance", r.Name), zap.Error(err))
	}
	return settings.Instance{Name: r.Name, Use: r.Plugin, Kind: r.Kind, Config: config, Secrets: secrets}
}

// withPaths returns the config of an instance with absolute paths of local files. It fails if
// one is not in the directory for them on this node.
func (s *Service) withPaths(one settings.Instance) (map[string]any, error) {
	source := s.plugins.Schema(one.Use, one.Kind)
	if len(source) == 0 {
		return one.Config, nil // the host reports the plugin as unknown, and starts nothing
	}
	tree, err := schemaOf(source)
	if err != nil {
		return nil, fmt.Errorf("schema of the plugin %s: %w", one.Use, err)
	}
	return s.files.resolve(one.Config, tree, one.Secrets)
}

// open returns the secrets of a record by JSON Pointer; never nil.
func (s *Service) open(r record) (map[string]string, error) {
	if r.Secrets == "" {
		return map[string]string{}, nil
	}
	keys, err := s.keys(false)
	if err != nil {
		return map[string]string{}, err
	}
	return openSecrets(keys, r)
}
