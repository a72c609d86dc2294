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
	dropped func(instance string, n int)

	mu       sync.Mutex
	tenants  map[string]*ring // of each instance in the process
	last     []string
	lost     int
	lostAt   time.Time
	panicked []string
}

func newLogBridge(log *zap.Logger, perSecond int, dropped func(string, int)) *logBridge {
	return &logBridge{
		log: log, limit: rate.NewLimiter(rate.Limit(perSecond), perSecond), scrub: &scrubber{}, dropped: dropped,
		tenants: map[string]*ring{},
	}
}

// admit notes that an instance lives in the process: its secrets are covered
// from here on, and its lines are kept in r.
func (b *logBridge) admit(instance string, scrub *scrubber, r *ring) {
	b.scrub.adopt(scrub)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tenants[instance] = r
}

// dismiss notes that an instance lives elsewhere now. The last one stays, for
// the last words.
func (b *logBridge) dismiss(instance string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.tenants) > 1 {
		delete(b.tenants, instance)
	}
}

// whose says which instance a line is about: the one it names, or the only one
// there is. The lock is held.
func (b *logBridge) whose(named string) string {
	if b.tenants[named] != nil {
		return named
	}
	if len(b.tenants) == 1 {
		for name := range b.tenants {
			return name
		}
	}
	return ""
}

// remember keeps a line for `guidon plugin logs`: with the instance it is about,
// or with all of them. The lock is held.
func (b *logBridge) remember(instance string, l Line) {
	if r := b.tenants[instance]; r != nil {
		r.add(l)
		return
	}
	for _, r := range b.tenants {
		r.add(l)
	}
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
		b.dropped(b.whose(""), 1)
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
		b.remember("", Line{At: time.Now().UTC(), Level: "error", Message: clip(b.panicked[0], maxLogValue)})
		b.log.Error(b.panicked[0], append(owner(b.whose("")), zap.String("stack", strings.Join(b.panicked[1:], "\n")))...)
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
		about := b.whose("")
		b.remember(about, Line{At: time.Now().UTC(), Level: "info", Message: clip(text, maxLogValue)})
		b.log.Info(clip(text, maxLogValue), append(owner(about), zap.Bool("raw", true), zap.String("stream", stream))...)
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
	about := b.whose(take(fields, "instance"))
	for key, value := range fields {
		if s, ok := value.(string); ok {
			fields[key] = clip(s, maxLogValue)
		}
	}
	b.remember(about, Line{At: time.Now().UTC(), Level: level.String(), Message: clip(message, maxLogValue), Fields: fields})
	entry := b.log.Check(level, message)
	if entry == nil {
		return
	}
	out := owner(about)
	for key, value := range fields {
		out = append(out, zap.Any(key, value))
	}
	entry.Write(out...)
}

// owner names the instance a line is about.
func owner(instance string) []zap.Field {
	if instance == "" {
		return nil
	}
	return []zap.Field{zap.String("instance", instance)}
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
