package host

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/time/rate"
)

const (
	maxLogLine  = 64 << 10 // the rest of a longer line is dropped
	maxLogValue = 8 << 10  // and of a longer field
	tailLines   = 20
	maxPanic    = 200 // lines of a panic kept as one record
)

// logBridge carries what a plugin writes to the server's log: structured lines
// keep their level and fields, others are marked raw, a panic becomes one
// record. Long lines are cut, too many are dropped and counted, and secrets are
// covered. It keeps the last lines for the diagnosis of an exit.
type logBridge struct {
	log     *zap.Logger
	limit   *rate.Limiter
	scrub   *scrubber
	dropped func(n int)

	mu       sync.Mutex
	last     []string
	lost     int
	lostAt   time.Time
	panicked []string
}

func newLogBridge(log *zap.Logger, perSecond int, scrub *scrubber, dropped func(int)) *logBridge {
	return &logBridge{log: log, limit: rate.NewLimiter(rate.Limit(perSecond), perSecond), scrub: scrub, dropped: dropped}
}

// read carries r until it ends. Standard error is read to the end whatever it
// holds: a plugin never blocks on its log.
func (b *logBridge) read(r io.Reader) {
	b.readFrom(bufio.NewReaderSize(r, maxLogLine), "stderr")
	b.flush()
}

func (b *logBridge) readFrom(in *bufio.Reader, stream string) {
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			b.line(line, stream)
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}

// line carries one line; it keeps nothing of the slice.
func (b *logBridge) line(line []byte, stream string) {
	text := b.scrub.clean(strings.ToValidUTF8(strings.TrimRight(string(line), "\r\n"), "�"))
	if text == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keep(text)
	if len(b.panicked) > 0 || isPanic(text) {
		if len(b.panicked) < maxPanic {
			b.panicked = append(b.panicked, text)
		}
		return
	}
	if !b.limit.Allow() {
		b.lost++
		b.dropped(1)
		return
	}
	if b.lost > 0 && time.Since(b.lostAt) > time.Second {
		b.log.Warn("plugin log lines were dropped", zap.Int("lines", b.lost))
		b.lost, b.lostAt = 0, time.Now()
	}
	b.write(text, stream)
}

// isPanic recognises the first line of a Go runtime's last words.
func isPanic(text string) bool {
	return strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")
}

func (b *logBridge) keep(text string) {
	if len(b.last) == tailLines {
		b.last = append(b.last[:0], b.last[1:]...)
	}
	b.last = append(b.last, clip(text, 1024))
}

// tail returns the last lines.
func (b *logBridge) tail() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.last...)
}

// flush writes what was held back, at the end of the stream.
func (b *logBridge) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.panicked) > 0 {
		b.log.Error(b.panicked[0], zap.String("stack", strings.Join(b.panicked[1:], "\n")))
	}
	if b.lost > 0 {
		b.log.Warn("plugin log lines were dropped", zap.Int("lines", b.lost))
	}
	b.panicked, b.lost = nil, 0
}

// write logs one line with its own level and fields where it has them: the
// keys of log/slog and of hclog are known.
func (b *logBridge) write(text, stream string) {
	fields := map[string]any{}
	if text[0] != '{' || json.Unmarshal([]byte(text), &fields) != nil {
		b.log.Info(clip(text, maxLogValue), zap.Bool("raw", true), zap.String("stream", stream))
		return
	}
	level := zapcore.InfoLevel
	if name := take(fields, "level", "@level"); name != "" {
		if strings.EqualFold(name, "trace") {
			name = "debug"
		}
		if parsed, err := zapcore.ParseLevel(strings.ToLower(name)); err == nil && parsed <= zapcore.ErrorLevel {
			level = parsed
		} else {
			level = zapcore.ErrorLevel
		}
	}
	message := take(fields, "msg", "message", "@message")
	take(fields, "time", "ts", "@timestamp")
	take(fields, "instance")
	entry := b.log.Check(level, message)
	if entry == nil {
		return
	}
	out := make([]zap.Field, 0, len(fields))
	for key, value := range fields {
		if s, ok := value.(string); ok {
			value = clip(s, maxLogValue)
		}
		out = append(out, zap.Any(key, value))
	}
	entry.Write(out...)
}

// take removes the first of the keys that holds a string and returns it.
func take(fields map[string]any, keys ...string) string {
	for _, key := range keys {
		if text, ok := fields[key].(string); ok {
			delete(fields, key)
			return text
		}
	}
	return ""
}
