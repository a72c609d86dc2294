// Package file is a sink that appends events to a file, one JSON object a line.
//
// What it has confirmed is on disk, unless fsync is off. A crash in the middle
// of a write leaves a torn line, which the next Open removes; the host sends
// that batch again, so a line may be there twice (deduplicate by uuid) but is
// never missing and never half. The file is rotated by size and age; a file that
// was moved or removed is made again. A file that does not begin with an event is
// neither opened nor changed.
package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// config is the config of an instance; sample.yaml explains each key.
type config struct {
	Path        string        `json:"path" format:"path" required:"true" doc:"File to append to. Its directory is made if need be."`
	Fsync       bool          `json:"fsync" doc:"Confirm events only when they are on disk. Without it the last second before a power cut may be lost."`
	RotateBytes int64         `json:"rotate_bytes" min:"0" doc:"Start a new file when this one would become larger. 0 never does."`
	RotateAge   time.Duration `json:"rotate_age" min:"0s" doc:"Start a new file when this one is older. 0s never does."`
	MaxFiles    int           `json:"max_files" min:"0" doc:"Rotated files to keep; older ones are removed. 0 keeps all."`
}

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "file", Version: "1.0.0", Exclusive: true,
		Summary: "Appends events to a file, one JSON object a line.",
		Sink:    func() sdk.Sink { return New() },
	}
}

// Sink is one file that events are appended to.
type Sink struct {
	cfg  config
	file *os.File
	size int64
	born time.Time
	now  func() time.Time
}

var (
	_ sdk.Sink       = (*Sink)(nil)
	_ sdk.Configured = (*Sink)(nil)
	_ sdk.Checker    = (*Sink)(nil)
)

// New returns a sink that is not open, its config at the defaults.
func New() *Sink {
	return &Sink{cfg: config{Fsync: true, RotateBytes: 100 << 20, MaxFiles: 0}, now: time.Now}
}

// Config is where the SDK puts the operator's config.
func (s *Sink) Config() any { return &s.cfg }

// Open opens the file, removes a torn last line, and locks the file so that two
// instances never write to it at once.
func (s *Sink) Open(ctx context.Context, _ sdk.OpenRequest) (sdk.SinkProperties, error) {
	if err := s.open(ctx); err != nil {
		return sdk.SinkProperties{}, err
	}
	p := sdk.SinkProperties{
		MaxInFlight: 1, Ordering: sdk.OrderTotal, Dedup: sdk.DedupNone, Commit: sdk.CommitImmediate,
		Durability: sdk.DurabilityMemory,
	}
	if s.cfg.Fsync {
		p.Durability = sdk.DurabilityLocalDisk
	}
	return p, nil
}

func (s *Sink) open(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(s.cfg.Path), 0o750); err != nil {
		return pathError(err)
	}
	f, err := os.OpenFile(s.cfg.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return pathError(err)
	}
	if err := s.adopt(ctx, f); err != nil {
		_ = f.Close()
		return err
	}
	s.file = f
	return nil
}

// adopt takes over an opened file: lock, repair, size and age.
func (s *Sink) adopt(ctx context.Context, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return sdk.Transient(err)
	}
	if !info.Mode().IsRegular() {
		return sdk.ConfigError("/path", fmt.Errorf("%s is not a regular file", s.cfg.Path))
	}
	if err := lock(f); err != nil {
		return sdk.Errorf(sdk.ClassTransient, "locked", "%s is in use by another process", s.cfg.Path)
	}
	whole, err := wholeLines(f, info.Size())
	if err != nil {
		return sdk.Transient(err)
	}
	if !holdsEvents(f, whole, info.Size()) {
		return sdk.ConfigError("/path", fmt.Errorf("%s does not begin with an event: it belongs to something else and is not changed", s.cfg.Path))
	}
	if whole < info.Size() {
		sdk.Log(ctx).Warn("a torn last line was removed", "path", s.cfg.Path, "bytes", info.Size()-whole)
		if err := f.Truncate(whole); err != nil {
			return sdk.Transient(err)
		}
	}
	s.size, s.born = whole, birth(f, info, s.now())
	if s.cfg.Fsync {
		return sdk.Transient(syncDir(filepath.Dir(s.cfg.Path)))
	}
	return nil
}

// Write appends the batch and confirms it. A batch that could only be written
// in part is cut off again.
func (s *Sink) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	lines := b.NDJSON()
	if err := s.prepare(ctx, int64(len(lines))); err != nil {
		return sdk.WriteResult{}, err
	}
	_, err := s.file.Write(lines)
	if err == nil && s.cfg.Fsync {
		err = s.file.Sync()
	}
	if err != nil {
		return sdk.WriteResult{}, s.undo(err)
	}
	s.size += int64(len(lines))
	return b.Committed(), nil
}

// prepare makes sure that the open file is the one at the path, and rotates.
func (s *Sink) prepare(ctx context.Context, more int64) error {
	if !s.inPlace() {
		sdk.Log(ctx).Info("the file was moved or removed by somebody else: starting a new one", "path", s.cfg.Path)
		return s.reopen(ctx)
	}
	full := s.cfg.RotateBytes > 0 && s.size+more > s.cfg.RotateBytes
	old := s.cfg.RotateAge > 0 && s.now().Sub(s.born) >= s.cfg.RotateAge
	if s.size == 0 || !full && !old {
		return nil
	}
	if err := s.rotate(); err != nil {
		return sdk.Transient(err)
	}
	if err := s.prune(); err != nil {
		sdk.Log(ctx).Warn("old files stay", "error", err.Error())
	}
	return s.reopen(ctx)
}

// inPlace reports whether the path still names the open file.
func (s *Sink) inPlace() bool {
	if s.file == nil {
		return false
	}
	mine, err := s.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(s.cfg.Path)
	return err == nil && os.SameFile(mine, there)
}

func (s *Sink) reopen(ctx context.Context) error {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
	return s.open(ctx)
}

// undo cuts off what a failed write left. If even that fails the file must be
// opened again, which repairs it.
func (s *Sink) undo(cause error) error {
	if err := s.file.Truncate(s.size); err != nil {
		return sdk.NotConnected(errors.Join(cause, err))
	}
	return sdk.Transient(cause)
}

// Check tries whether the directory can be written to.
func (s *Sink) Check(context.Context) error {
	f, err := os.CreateTemp(filepath.Dir(s.cfg.Path), ".check-")
	if err != nil {
		return pathError(err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Close closes the file; what was confirmed is already safe.
func (s *Sink) Close(context.Context) error {
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}

// pathError blames the config for what only the operator can change.
func pathError(err error) error {
	if badPath(err) {
		return sdk.ConfigError("/path", err)
	}
	return sdk.Transient(err)
}
