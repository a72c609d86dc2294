package host

import (
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// Backoff is the pure rule of restarts.
type Backoff struct{ b backoff }

// NewBackoff returns one that has seen nothing.
func NewBackoff(cfg settings.Restart) *Backoff { return &Backoff{backoff{cfg: cfg}} }

// Next is what follows an exit.
func (b *Backoff) Next(now time.Time, ready time.Duration, random float64) (time.Duration, bool) {
	return b.b.next(now, ready, func() float64 { return random })
}

// Logs is a bridge to be written to line by line.
type Logs struct{ b *logBridge }

// NewLogs returns a bridge that counts what it drops.
func NewLogs(log *zap.Logger, perSecond int, dropped func(int)) *Logs {
	return &Logs{newLogBridge(log, perSecond, func(_ string, n int) { dropped(n) })}
}

// Line is one line of a plugin.
func (l *Logs) Line(text []byte) { l.b.line(text, "stderr") }

// Read is the whole of a stream.
func (l *Logs) Read(r io.Reader) { l.b.read(r) }

// End is the end of the stream.
func (l *Logs) End() { l.b.flush() }

// Tail is the last lines.
func (l *Logs) Tail() []string { return l.b.tail() }

// Read reads a plugin's answer to a batch.
func Read(out *sinkv1.WriteBatchResponse, b *sdk.Batch) (sdk.WriteResult, error) {
	return resultFromProto(out, b, b.LastSeq, 0, nil)
}

// Expand replaces references.
func Expand(text string) (string, bool, error) { return expand(text) }

// RunDir makes the private directory of a run.
func RunDir(base, dataDir string) (path string, remove func() error, err error) {
	r, err := newRunDir(base, dataDir)
	if err != nil {
		return "", nil, err
	}
	return r.path, r.remove, nil
}
