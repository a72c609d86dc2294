package app

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// LogConfig is how the server speaks of its work, on standard error.
type LogConfig struct {
	// Level is the least important line that is written: debug, info, warn
	// or error.
	Level string `koanf:"level"`
	// Format is json, console (for people), or auto: console when standard
	// error is a terminal, json otherwise.
	Format string `koanf:"format"`
}

// Validate says which setting is wrong, or returns nil.
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

// flushEvery is how long a line may wait in memory: a write a line would cost
// more than the line.
const flushEvery = 100 * time.Millisecond

// NewLog returns the root logger. c has been validated. Sync writes what waits.
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
