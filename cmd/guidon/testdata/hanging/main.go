// Command hanging is a sink that misbehaves as its config selects: it never returns from
// one of its calls, ends at an event, or prints a part of its secret. It ignores SIGTERM.
package main

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/guidonhq/guidon/sdk"
)

type sink struct {
	cfg struct {
		In     string `json:"in" doc:"Call that hangs: open, write or close."`
		ExitOn string `json:"exit_on" doc:"Event at which the process ends."`
	}
}

func (s *sink) Config() any { return &s.cfg }

func (s *sink) hang(call string) {
	if s.cfg.In == call {
		select {}
	}
}

func (s *sink) Open(context.Context, sdk.OpenRequest) (sdk.SinkProperties, error) {
	s.hang("open")
	return sdk.SinkProperties{}, nil
}

func (s *sink) Write(_ context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	s.hang("write")
	for _, r := range b.Records {
		if s.cfg.ExitOn != "" && bytes.Contains(r.JSON, []byte(`"`+s.cfg.ExitOn+`"`)) {
			os.Exit(3)
		}
	}
	return b.Committed(), nil
}

func (s *sink) Flush(_ context.Context, req sdk.FlushRequest) (sdk.FlushResult, error) {
	return sdk.FlushResult{CommittedThrough: req.UpTo}, nil
}

func (s *sink) Close(context.Context) error {
	s.hang("close")
	return nil
}

func main() {
	signal.Ignore(syscall.SIGTERM)
	sdk.Serve(sdk.Plugin{Name: "test/hanging", Version: "1.0.0", Sink: func() sdk.Sink { return &sink{} }})
}
