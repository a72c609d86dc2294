package sdk

import (
	"context"
	"io"
	"log/slog"
	"os"
)

// logOutput is the true standard error: the host reads it line by line.
var logOutput io.Writer = os.Stderr

// logger is the process's logger; Serve sets its level.
var logger = slog.New(slog.NewJSONHandler(logOutput, nil))

type logKey struct{}

// Log returns the logger of the instance that ctx belongs to: structured, in
// the host's log with the instance's name on every line. Never log a secret.
func Log(ctx context.Context) *slog.Logger {
	if l, ok := ctx.Value(logKey{}).(*slog.Logger); ok {
		return l
	}
	return logger
}

// setUpLog takes the level from the environment and makes our logger the
// default of log/slog, so that libraries that use it are heard too.
func setUpLog() {
	var level slog.Level
	if err := level.UnmarshalText([]byte(os.Getenv(LogLevelKey))); err != nil {
		level = slog.LevelInfo
	}
	logger = slog.New(slog.NewJSONHandler(logOutput, &slog.HandlerOptions{Level: level}))
	slog.SetDefault(logger)
}
