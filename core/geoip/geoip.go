// Package geoip finds the location of an address in a MaxMind DB file that the
// operator provides.
//
// A Database is the file in memory. It is not mapped: a file that is overwritten in
// place would end the process. It looks at the file in an interval; a new file is
// read and verified as a whole, node by node, before it replaces the one in use, so
// a lookup sees one version of the file. A file that is missing, cut short or
// damaged leaves the version in use, and the log says so once for each change. A
// server without a usable file starts and serves: locations are missing, and the
// readiness of the server is degraded.
//
// Lookups take no lock and do no I/O. Each distinct record of the file is decoded
// once and kept in the compact form of core/geoip/location.
//
// Addresses of private networks have no location, also when the file has one for
// them. The package neither downloads files nor stores addresses.
package geoip

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
)

// maxFile is the size of the largest file that is read, in bytes. The largest
// database with locations on the market has a quarter of it.
const maxFile = 1 << 30

// Database is the file in use. Its methods are safe for concurrent use.
type Database struct {
	cfg     Config
	log     *zap.Logger
	current atomic.Pointer[file]
	state   atomic.Pointer[Status]
	seen    stamp // of the file at the last attempt to load it
	service retry.Service
	loads   *prometheus.CounterVec
}

// Status describes the database for operators.
type Status struct {
	// State is ok, missing (there is no file and none was loaded) or stale (the
	// file cannot be used, and the one before it is in use), or failed (the file
	// cannot be used, and there is none before it).
	State string `json:"state"`
	// Type and Built are those of the file in use, empty without one.
	Type  string     `json:"type,omitempty"`
	Built *time.Time `json:"built,omitempty"`
	// Error is why the file cannot be used.
	Error string `json:"error,omitempty"`
}

// Degraded reports whether an operator has to act.
func (s Status) Degraded() bool { return s.State != "ok" }

// stamp tells versions of a file apart.
type stamp struct {
	size     int64
	modified time.Time
	exists   bool
}

// New returns the database of the config, not loaded yet. A nil log and reg disable
// logging and metrics.
func New(cfg Config, log *zap.Logger, reg prometheus.Registerer) *Database {
	if log == nil {
		log = zap.NewNop()
	}
	d := &Database{cfg: cfg, log: log.Named("geoip")}
	if d.Enabled() {
		d.registerMetrics(reg)
	}
	return d
}

// Enabled reports whether a file is configured.
func (d *Database) Enabled() bool { return d.cfg.Database != "" }

// Start loads the file and follows it until Stop. It never fails: the file may come
// later. Without a configured file it has no effect.
func (d *Database) Start(context.Context) error {
	if !d.Enabled() {
		return nil
	}
	d.Refresh()
	d.service.Start()
	d.service.Every(d.cfg.ReloadInterval, func(context.Context) { d.Refresh() })
	return nil
}

// Stop ends following the file. The version in use stays in use.
func (d *Database) Stop(ctx context.Context) error { return d.service.Stop(ctx) }

// Status returns the state of the database.
func (d *Database) Status() Status {
	if s := d.state.Load(); s != nil {
		return *s
	}
	return Status{State: "missing"}
}

// Locate returns the location of an address in the compact form of
// core/geoip/location; nothing for an address that is unknown or internal, and
// without a usable file. The caller must not change it.
func (d *Database) Locate(addr netip.Addr) []byte {
	f := d.current.Load()
	if f == nil {
		return nil
	}
	if addr = addr.Unmap().WithZone(""); !isPublic(addr) {
		return nil
	}
	return f.locate(addr)
}

// sharedSpace is the network that providers share between their customers.
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")

// isPublic reports whether an address may belong to a client on the internet.
func isPublic(addr netip.Addr) bool {
	return addr.IsValid() && addr.IsGlobalUnicast() && !addr.IsPrivate() && !sharedSpace.Contains(addr)
}

// Refresh loads the file if it has changed since the last attempt. It is for one
// goroutine at a time.
func (d *Database) Refresh() {
	now := stampOf(d.cfg.Database)
	if now == d.seen && d.state.Load() != nil {
		return
	}
	d.seen = now
	started := time.Now()
	f, err := d.load(now)
	if err != nil {
		d.keep(now, err)
		return
	}
	d.current.Store(f)
	built := f.reader.Metadata.BuildTime().UTC()
	d.state.Store(&Status{State: "ok", Type: f.reader.Metadata.DatabaseType, Built: &built})
	d.loads.WithLabelValues("ok").Inc()
	d.log.Info("geoip database loaded", zap.String("file", d.cfg.Database), zap.String("type", f.reader.Metadata.DatabaseType),
		zap.Time("built", built), zap.Int64("bytes", now.size), zap.Duration("took", time.Since(started)))
	if !f.hasLocations() {
		d.log.Warn("geoip database without locations: use a file of cities or countries", zap.String("file", d.cfg.Database), zap.String("type", f.reader.Metadata.DatabaseType))
	}
}

// keep records that the file cannot be used.
func (d *Database) keep(now stamp, err error) {
	s := Status{State: "failed", Error: err.Error()}
	if !now.exists {
		s.State = "missing"
	}
	if f := d.current.Load(); f != nil {
		built := f.reader.Metadata.BuildTime().UTC()
		s.State, s.Type, s.Built = "stale", f.reader.Metadata.DatabaseType, &built
		d.log.Error("geoip database reload failed: the old one stays in use", zap.String("file", d.cfg.Database), zap.Error(err))
	} else {
		d.log.Error("geoip database unavailable: events and flags have no location", zap.String("file", d.cfg.Database), zap.Error(err))
	}
	d.state.Store(&s)
	d.loads.WithLabelValues("failed").Inc()
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.Size(), info.ModTime(), true}
}

// load reads and verifies the file.
func (d *Database) load(now stamp) (*file, error) {
	if now.size > maxFile {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", d.cfg.Database, now.size, int64(maxFile))
	}
	raw, err := os.ReadFile(d.cfg.Database)
	if err != nil {
		return nil, err
	}
	return open(raw)
}
