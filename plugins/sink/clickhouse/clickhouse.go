// Package clickhouse is a sink that keeps events in a table of ClickHouse, and
// answers questions about them.
//
// It speaks HTTP, which every version does alike, in the SQL that ClickHouse 18
// and later understand. The table replaces rows of the same event with one
// another, and every question counts an event once: however often a batch is
// sent, the answers are the same. The table is made on the first start and gets
// the columns of later versions by itself.
package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// config is the config of an instance; sample.yaml explains each key.
type config struct {
	URL         string        `json:"url" required:"true" secret:"true" doc:"Where the HTTP interface is: https://host:8443, or http://host:8123, which is not encrypted."`
	User        string        `json:"user" doc:"Name of the user."`
	Password    string        `json:"password" secret:"true" doc:"Password of the user."`
	CAFile      string        `json:"ca_file" format:"path" doc:"PEM file with the certificates to trust instead of the system's."`
	Database    string        `json:"database" doc:"Database the table is in. It must exist."`
	Table       string        `json:"table" doc:"Table to insert into."`
	Manage      bool          `json:"manage" doc:"Make the table and the columns of later versions. Without it they must be there."`
	Engine      string        `json:"engine" doc:"Engine of the table when it is made: one of the ReplacingMergeTree family."`
	Cluster     string        `json:"cluster" doc:"Cluster on which the table is made; empty for this server alone."`
	Connections int           `json:"connections" min:"1" max:"64" doc:"How many batches are written at once."`
	MaxEvents   int           `json:"max_events" min:"1" max:"50000" doc:"Most events in a batch. Each batch makes a part of the table: few large ones are better."`
	Linger      time.Duration `json:"linger" min:"0s" max:"1m" doc:"How long the server may wait to fill a batch."`
	Timeout     time.Duration `json:"timeout" min:"1s" max:"10m" doc:"How long a request may take."`
}

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "clickhouse", Version: "1.0.0",
		Summary: "Keeps events in a table of ClickHouse, and answers questions about them.",
		Sink:    func() sdk.Sink { return New() },
	}
}

// Sink is one table that events are inserted into. Write and the questions may
// be called from several goroutines.
type Sink struct {
	cfg    config
	client *client
	seen   progress
}

var (
	_ sdk.Sink       = (*Sink)(nil)
	_ sdk.Configured = (*Sink)(nil)
	_ sdk.Validator  = (*Sink)(nil)
	_ sdk.Checker    = (*Sink)(nil)
	_ sdk.Querier    = (*Sink)(nil)
)

// New returns a sink that is not open, its config at the defaults.
func New() *Sink {
	return &Sink{cfg: config{
		User: "default", Database: "default", Table: "events", Manage: true, Engine: "ReplacingMergeTree()",
		Connections: 2, MaxEvents: 20_000, Linger: time.Second, Timeout: time.Minute,
	}}
}

// Config is where the SDK puts the operator's config.
func (s *Sink) Config() any { return &s.cfg }

var engine = regexp.MustCompile(`^[A-Za-z]*ReplacingMergeTree\b`)

// Validate checks what tags cannot express.
func (s *Sink) Validate() error {
	var errs []error
	u, err := url.Parse(s.cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" {
		errs = append(errs, sdk.ConfigError("/url", errors.New("this is not https://host:port or http://host:port")))
	} else if u.User != nil {
		errs = append(errs, sdk.ConfigError("/url", errors.New("the user and the password have options of their own")))
	}
	for pointer, name := range map[string]string{"/database": s.cfg.Database, "/table": s.cfg.Table} {
		if name == "" || len(name) > 200 || strings.ContainsAny(name, "`\\\x00") {
			errs = append(errs, sdk.ConfigError(pointer, errors.New("a name has 1 to 200 bytes, without backquotes and backslashes")))
		}
	}
	if strings.ContainsAny(s.cfg.Cluster, "`\\\x00") {
		errs = append(errs, sdk.ConfigError("/cluster", errors.New("a name has no backquotes and backslashes")))
	}
	if !engine.MatchString(s.cfg.Engine) {
		errs = append(errs, sdk.ConfigError("/engine", fmt.Errorf("%q is not of the ReplacingMergeTree family: events that are sent again would be there twice", s.cfg.Engine)))
	}
	return errors.Join(errs...)
}

// Open connects and sees to the table.
func (s *Sink) Open(ctx context.Context, req sdk.OpenRequest) (sdk.SinkProperties, error) {
	var err error
	if s.client, err = newClient(&s.cfg); err != nil {
		return sdk.SinkProperties{}, err
	}
	s.seen.begin(req.CommittedThrough)
	if err := s.prepare(ctx); err != nil {
		return sdk.SinkProperties{}, err
	}
	durability := sdk.DurabilityLocalDisk
	if strings.HasPrefix(s.cfg.Engine, "Replicated") {
		durability = sdk.DurabilityReplicated
	}
	return sdk.SinkProperties{
		MaxInFlight: s.cfg.Connections, MaxEvents: s.cfg.MaxEvents, MaxBytes: 4 << 20, Linger: s.cfg.Linger,
		Ordering: sdk.OrderNone, Dedup: sdk.DedupByEventID, Commit: sdk.CommitImmediate, Durability: durability,
	}, nil
}

// Check inserts no rows, which needs the right to insert some.
func (s *Sink) Check(ctx context.Context) error { return s.insert(ctx, nil) }

// Close closes the connections; what was confirmed is already safe.
func (s *Sink) Close(context.Context) error {
	if s.client != nil {
		s.client.http.CloseIdleConnections()
	}
	return nil
}
