package app

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// LogConfig configures the log on standard error.
type LogConfig struct {
	// Level is the lowest level that is written: debug, info, warn or error.
	Level string `koanf:"level"`
	// Format is json, console, or auto: console when standard error is a
	// terminal, json otherwise.
	Format string `koanf:"format"`
}

// Validate returns an error that names the wrong setting, or nil.
func (c LogConfig) Validate() error {
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

// NewLog returns the root logger. c must be valid. Sync writes the buffered
// lines.
func NewLog(c LogConfig) *zap.Logger {
	level, _ := zapcore.ParseLevel(c.Level)
	keys := zap.NewProductionEncoderConfig()
	keys.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	keys.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(keys)
	if c.Format == "console" || c.Format == "auto" && terminal(os.Stderr) {
		keys.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		keys.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(keys)
	}
	out := &zapcore.BufferedWriteSyncer{WS: os.Stderr, FlushInterval: flushEvery}
	return zap.New(zapcore.NewCore(encoder, out, level), zap.ErrorOutput(zapcore.Lock(os.Stderr)))
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
