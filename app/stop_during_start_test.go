package app_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/plugins"
)

// TestStopDuringStart ends the context of Serve before the start, and between the time
// that the server listens and the end of the start. Both are stops without an error, as
// a service manager expects.
func TestStopDuringStart(t *testing.T) {
	for message, last := range map[string]string{"": "stopped during the start", "listening": "stopped"} {
		t.Run(last, func(t *testing.T) {
			dir := t.TempDir()
			cfg, err := app.Load(file(t, "plugins:\n  instances:\n    - {name: lines, kind: sink, use: file, config: {path: "+filepath.Join(dir, "lines")+"}}\n"), nil)
			if err != nil {
				t.Fatal(err)
			}
			cfg.DataDir = filepath.Join(dir, "data")
			cfg.HTTP.Address, cfg.HTTP.AdminAddress = "127.0.0.1:0", "127.0.0.1:0"
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if message == "" {
				cancel()
			}
			core, logged := observer.New(zapcore.InfoLevel)
			log := zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
				if e.Message == message {
					cancel()
				}
				return nil
			}))
			err = app.Serve(ctx, cfg, app.Options{Version: "test", Log: log, BundledNames: plugins.Names(),
				Bundled: func(name string) []string { return []string{os.Args[0], "plugin", "exec", name} }})
			if err != nil {
				t.Errorf("serve: %v", err)
			}
			var messages []string
			for _, e := range logged.All() {
				messages = append(messages, e.Message)
			}
			if len(messages) == 0 || messages[len(messages)-1] != last || slices.Contains(messages, "serving") != (last == "stopped") {
				t.Errorf("logged %q, want %q at the end", messages, last)
			}
		})
	}
}
