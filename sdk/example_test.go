package sdk_test

import (
	"context"
	"os"

	"github.com/guidonhq/guidon/sdk"
)

// lines is a whole sink: it appends events to a file.
type lines struct {
	cfg struct {
		Path string `json:"path" required:"true" doc:"File to append to."`
		Sync bool   `json:"sync" doc:"Confirm only what is on disk."`
	}
	file *os.File
}

func newLines() sdk.Sink {
	l := &lines{}
	l.cfg.Sync = true // the value before the config is read is the default
	return l
}

func (l *lines) Config() any { return &l.cfg }

func (l *lines) Open(context.Context, sdk.OpenRequest) (p sdk.SinkProperties, err error) {
	p.Ordering, p.Durability = sdk.OrderTotal, sdk.DurabilityLocalDisk
	l.file, err = sdk.OpenLines(l.cfg.Path)
	return p, sdk.ConfigError("/path", err)
}

func (l *lines) Write(_ context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	if err := sdk.AppendLines(l.file, b.NDJSON()); err != nil {
		return sdk.WriteResult{}, sdk.Transient(err) // the server sends the whole batch again
	}
	if l.cfg.Sync {
		if err := l.file.Sync(); err != nil {
			return sdk.WriteResult{}, sdk.Transient(err)
		}
	}
	return b.Committed(), nil
}

func (l *lines) Close(context.Context) error { return l.file.Close() }

// A sink in about thirty lines. In a program of its own, Serve is all that main
// does.
func Example() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		sdk.Serve(sdk.Plugin{Name: "acme/lines", Version: "1.0.0", Sink: newLines})
	}
}
