// Package stdout is a sink that prints events on the server's own standard
// output, one JSON object a line: for a container whose output is collected, and
// for looking on while trying things out.
//
// A plugin's own standard output belongs to the conversation with its host, so
// the sink opens that of the server, its parent process.
package stdout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// config is the config of an instance; sample.yaml explains each key.
type config struct {
	Stream string `json:"stream" enum:"stdout|stderr" doc:"Which output of the server to print on. Its log goes to stderr."`
}

// Plugin describes the plugin to the SDK.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "stdout", Version: "1.0.0",
		Summary: "Prints events on the server's standard output, one JSON object a line.",
		Sink:    func() sdk.Sink { return New() },
	}
}

// Sink is the server's output.
type Sink struct {
	cfg  config
	file *os.File
	torn bool // the last write broke off in the middle of a line
}

var (
	_ sdk.Sink       = (*Sink)(nil)
	_ sdk.Configured = (*Sink)(nil)
)

// New returns a sink that is not open, its config at the defaults.
func New() *Sink { return &Sink{cfg: config{Stream: "stdout"}} }

// Config is where the SDK puts the operator's config.
func (s *Sink) Config() any { return &s.cfg }

// Open opens the output of the parent process, which Linux lets its user do by
// a path. An output that has none, such as a socket, cannot be printed on.
func (s *Sink) Open(context.Context, sdk.OpenRequest) (sdk.SinkProperties, error) {
	number := map[string]int{"stdout": 1, "stderr": 2}[s.cfg.Stream]
	file, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", os.Getppid(), number), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return sdk.SinkProperties{}, sdk.ConfigError("/stream", fmt.Errorf("the server's %s cannot be opened: %w", s.cfg.Stream, err))
	}
	s.file = file
	return sdk.SinkProperties{MaxInFlight: 1, Ordering: sdk.OrderTotal, Dedup: sdk.DedupNone, Durability: sdk.DurabilityMemory}, nil
}

// Write prints the batch. It blocks without a reader until ctx ends.
func (s *Sink) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	deadline, _ := ctx.Deadline()
	if !deadline.IsZero() {
		deadline = deadline.Add(-100 * time.Millisecond)
	}
	_ = s.file.SetWriteDeadline(deadline) // a file takes none, and does not block
	lines := b.NDJSON()
	if s.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := s.file.Write(lines)
	s.torn = err != nil && (n > 0 || s.torn)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return sdk.WriteResult{}, sdk.Errorf(sdk.ClassTransient, "blocked", "nobody reads the server's %s", s.cfg.Stream)
	case err != nil:
		return sdk.WriteResult{}, sdk.Transient(err)
	}
	return b.Committed(), nil
}

// Close closes the sink's own handle; the server's stays open.
func (s *Sink) Close(context.Context) error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
