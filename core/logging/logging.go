// Package logging makes the logger of the server: lines as JSON or for a terminal, with
// secrets replaced, and a level that may change.
package logging

import (
	"fmt"
	"io"
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/guidonhq/guidon/core/host/secret"
)

// Config configures the log on standard error.
type Config struct {
	// Level is the lowest level that is written: debug, info, warn or error.
	Level string `koanf:"level" live:"true"`
	// Format is json, console, or auto: console when standard error is a
	// terminal, json otherwise.
	Format string `koanf:"format"`
}

// Validate returns an error that names the wrong setting, or nil.
func (c Config) Validate() error {
	if _, err := zapcore.ParseLevel(c.Level); err != nil {
		return fmt.Errorf("level must be debug, info, warn or error, got %q", c.Level)
	}
	switch c.Format {
	case "json", "console", "auto":
		return nil
	}
	return fmt.Errorf("format must be json, console or auto, got %q", c.Format)
}

// flushEvery is the longest time that a line waits in memory. One write for each
// line would cost more than formatting the line.
const flushEvery = 100 * time.Millisecond

// LevelOf returns the level of a valid Config.
func LevelOf(c Config) zapcore.Level {
	level, _ := zapcore.ParseLevel(c.Level)
	return level
}

// New returns the root logger, with a level that may change. c must be valid. Sync writes
// the buffered lines. The values of secrets, which may be nil, are replaced in each line.
func New(c Config, level zap.AtomicLevel, secrets *secret.Redactor, to io.Writer) *zap.Logger {
	keys := zap.NewProductionEncoderConfig()
	keys.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	keys.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(keys)
	if c.Format == "console" || c.Format == "auto" && terminal(os.Stderr) {
		keys.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		keys.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(keys)
	}
	// Without the Sync of a file, which each flush would call: ten fsyncs a second.
	out := &zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(struct{ io.Writer }{to}), FlushInterval: flushEvery}
	return zap.New(zapcore.NewCore(encoder, redactedWriter{out, secrets}, level), zap.ErrorOutput(zapcore.Lock(os.Stderr)))
}

// redactedWriter replaces secrets in each line. The core passes one complete line
// to Write.
type redactedWriter struct {
	zapcore.WriteSyncer
	secrets *secret.Redactor
}

func (w redactedWriter) Write(line []byte) (int, error) {
	if w.secrets.Empty() {
		return w.WriteSyncer.Write(line)
	}
	if _, err := w.WriteSyncer.Write([]byte(w.secrets.Redact(string(line)))); err != nil {
		return 0, err
	}
	return len(line), nil
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
