package app

import (
	"io"
	"os"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/logging"
)

// LogConfig configures the log on standard error.
type LogConfig = logging.Config

// useLog makes a logger from the configuration unless the options have one, and
// reports whether it did.
func (o *Options) useLog(cfg Config) bool {
	if o.Log != nil {
		return false
	}
	level := zap.NewAtomicLevelAt(logging.LevelOf(cfg.Log))
	o.Log, o.LogLevel = logging.New(cfg.Log, level, cfg.Secrets, os.Stderr), &level
	return true
}

// NewLog returns the root logger. c must be valid. Sync writes the buffered
// lines. The values of secrets, which may be nil, are replaced in each line.
func NewLog(c LogConfig, secrets *secret.Redactor) *zap.Logger {
	return NewLogTo(c, secrets, os.Stderr)
}

// NewLogTo is NewLog with the lines written to to.
func NewLogTo(c LogConfig, secrets *secret.Redactor, to io.Writer) *zap.Logger {
	return logging.New(c, zap.NewAtomicLevelAt(logging.LevelOf(c)), secrets, to)
}
