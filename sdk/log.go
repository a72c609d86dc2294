package sdk

import (
	"context"
	"io"
	"log/slog"
	"os"

	"google.golang.org/grpc/metadata"
)

// logOutput is the true standard error: the host reads it line by line.
var logOutput io.Writer = os.Stderr

// logLevel is what the process logs at the least; the host may change it.
var logLevel slog.LevelVar

// logger is the process's logger.
var logger = slog.New(slog.NewJSONHandler(logOutput, &slog.HandlerOptions{Level: &logLevel}))

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
	_ = setLogLevel(os.Getenv(LogLevelKey)) // the default, if it names none
	slog.SetDefault(logger)
}

// setLogLevel changes the level of everything that is logged from now on.
func setLogLevel(name string) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return err
	}
	logLevel.Set(level)
	return nil
}

// TraceParent returns which trace and span the call that ctx belongs to is part
// of, as the W3C header traceparent has it, or "" when it is part of none. With
// OpenTelemetry, hand it to propagation.TraceContext as "traceparent" to have
// the plugin's own spans in the server's trace; or pass it on in the
// plugin's own calls.
func TraceParent(ctx context.Context) string {
	if values := metadata.ValueFromIncomingContext(ctx, "traceparent"); len(values) > 0 {
		return values[0]
	}
	return ""
}
