// Package parquet is a sink that keeps events in Parquet files, in a directory
// or in a store that speaks S3.
//
// Events are held in memory until the server requests a flush, and are then
// written to one file a project and hour of receipt. What was not flushed is
// still in the server's journal and is sent again after a crash. A file's name
// lists the events in it, so that the same events are written to the same
// file; and before files are written they are noted down, so that events that
// the server sends again because it never heard that they are safe are found
// there. No file is ever changed or removed.
package parquet

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
	Path      string        `json:"path" format:"path" doc:"Directory to write to. It is made. Either this or s3."`
	S3        s3Config      `json:"s3" doc:"Store to write to."`
	Partition string        `json:"partition_by" enum:"received_at|timestamp" doc:"Time that says which date and hour an event belongs to. By received_at an hour that is over gets no more files; by timestamp late events and imports make small ones."`
	MaxEvents int           `json:"flush_events" min:"1" max:"1000000" doc:"Events that are held in memory before they are written."`
	MaxBytes  int           `json:"flush_bytes" min:"65536" max:"1073741824" doc:"Bytes of JSON that are held in memory before they are written."`
	MaxAge    time.Duration `json:"flush_age" min:"1s" max:"1h" doc:"How long an event is held before it is written."`
}

type s3Config struct {
	Endpoint  string        `json:"endpoint" doc:"Where the store is, as https://host[:port]. http is not encrypted."`
	Bucket    string        `json:"bucket" doc:"Bucket to write to. It must exist."`
	Prefix    string        `json:"prefix" doc:"Folder in the bucket that everything is put in."`
	Region    string        `json:"region" doc:"Region of the bucket."`
	AccessKey string        `json:"access_key" doc:"Access key; empty for the role of the machine."`
	SecretKey string        `json:"secret_key" secret:"true" doc:"The secret that belongs to the access key."`
	PathStyle bool          `json:"path_style" doc:"Put the bucket into the path rather than the host name, as most stores but Amazon's need it."`
	Timeout   time.Duration `json:"timeout" min:"1s" max:"10m" doc:"How long a request may take."`
}

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "parquet", Version: "1.0.0",
		Summary: "Keeps events in Parquet files, in a directory or an S3 bucket.",
		Sink:    func() sdk.Sink { return New() },
	}
}

// Sink is a place for files and the events that wait to be written there. Write
// and Flush are called one after the other.
type Sink struct {
	cfg       config
	instance  string
	place     place
	held      held
	taken     uint64  // the last number of the last batch
	accepted  uint64  // the last number that is held
	safe      flushes // those that the server may not know of
	known     bool    // safe is true
	settled   bool    // a batch has come since the last flush
	resumed   uint64  // what the server knew to be safe at Open
	committed uint64
}

var (
	_ sdk.Sink       = (*Sink)(nil)
	_ sdk.Configured = (*Sink)(nil)
	_ sdk.Validator  = (*Sink)(nil)
	_ sdk.Checker    = (*Sink)(nil)
	_ sdk.Flusher    = (*Sink)(nil)
)

// New returns a sink that is not open, its config at the defaults.
func New() *Sink {
	return &Sink{cfg: config{
		Partition: byReceipt, MaxEvents: 100_000, MaxBytes: 64 << 20, MaxAge: 5 * time.Minute,
		S3: s3Config{Region: "us-east-1", PathStyle: true, Timeout: time.Minute},
	}}
}

// The times an event can be filed under.
const byReceipt, byTimestamp = "received_at", "timestamp"

// Config is where the SDK puts the operator's config.
func (s *Sink) Config() any { return &s.cfg }

// Validate checks what tags cannot express.
func (s *Sink) Validate() error {
	disk, s3 := s.cfg.Path != "", s.cfg.S3.Endpoint != "" || s.cfg.S3.Bucket != ""
	switch {
	case disk && s3:
		return sdk.ConfigError("/path", errors.New("name a path or an S3 store, not both"))
	case s3:
		return s.cfg.S3.validate()
	case !disk:
		return sdk.ConfigError("/path", errors.New("name a path or an S3 store"))
	}
	return nil
}

func (c *s3Config) validate() error {
	var errs []error
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.Scheme != "http" && u.Scheme != "https" {
		errs = append(errs, sdk.ConfigError("/s3/endpoint", errors.New("an endpoint is https://host[:port], and nothing more")))
	}
	if c.Bucket == "" {
		errs = append(errs, sdk.ConfigError("/s3/bucket", errors.New("name the bucket")))
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		errs = append(errs, sdk.ConfigError("/s3/access_key", errors.New("an access key and its secret come together")))
	}
	if strings.HasPrefix(c.Prefix, "/") {
		errs = append(errs, sdk.ConfigError("/s3/prefix", errors.New("a prefix does not begin with a slash")))
	}
	return errors.Join(errs...)
}

// unsafe are the characters of an instance's name that are not put into the
// name of a file.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// Open looks at the place.
func (s *Sink) Open(ctx context.Context, req sdk.OpenRequest) (sdk.SinkProperties, error) {
	s.instance = unsafe.ReplaceAllStringFunc(req.Instance, func(c string) string { return fmt.Sprintf("~%x~", c) })
	s.resumed, s.committed = req.CommittedThrough, req.CommittedThrough
	durability := sdk.DurabilityReplicated
	var err error
	if s.cfg.Path != "" {
		s.place, err = openDisk(s.cfg.Path, s.instance)
		durability = sdk.DurabilityLocalDisk
	} else {
		s.place, err = openS3(ctx, s.cfg.S3)
	}
	if err != nil {
		return sdk.SinkProperties{}, err
	}
	return sdk.SinkProperties{
		MaxInFlight: 1, MaxEvents: 5000, MaxBytes: 4 << 20, Ordering: sdk.OrderTotal,
		Dedup: sdk.DedupByBatchID, Commit: sdk.CommitOnFlush, Durability: durability,
		MaxStagedEvents: s.cfg.MaxEvents, MaxStagedBytes: s.cfg.MaxBytes, MaxStagedAge: s.cfg.MaxAge,
	}, nil
}

// Check writes a small file and removes it.
func (s *Sink) Check(ctx context.Context) error {
	name := own + "check-" + s.instance
	if err := s.place.put(ctx, name, []byte("ok")); err != nil {
		return err
	}
	return s.place.remove(ctx, name)
}

// Close drops held events: they were not confirmed, and are sent again.
func (s *Sink) Close(context.Context) error {
	s.held = held{}
	return nil
}
