package process

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/time/rate"

	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/text"
)

const (
	logLineBytes = 1 << 10  // of a line that counts as one for the limit
	maxLogLine   = 64 << 10 // bytes; the rest of a line is dropped
	maxLogValue  = 8 << 10  // bytes of a field
	tailLines    = 20       // kept for the exit status
	maxPanic     = 200      // lines of a panic in one record
)

// LogPipe copies the output of a plugin process to the server's log. Structured
// lines (log/slog and hclog) keep their level and fields, other lines are marked
// raw, and a panic becomes one record. Long lines are truncated, lines above the
// rate limit are dropped and counted, and secrets are redacted. It keeps the last
// lines for the exit status. Its methods are safe for concurrent use.
type LogPipe struct {
	log      *zap.Logger
	limit    *rate.Limiter
	redactor *secret.Redactor
	dropped  func(instance string, n int)

	mu        sync.Mutex
	instances map[string]*LogBuffer // by instance in the process
	last      []string
	firstFail string // the first line of a panic; the stack that follows leaves last
	lost      int
	lostAt    time.Time
	panicked  []string
}

// NewLogPipe returns a pipe to log with a limit of lines a second, of which a long
// line counts as one for each started KiB. It calls
// dropped for lines above the limit, with "" for an unknown instance.
func NewLogPipe(log *zap.Logger, perSecond int, dropped func(string, int)) *LogPipe {
	return &LogPipe{
		log: log, limit: rate.NewLimiter(rate.Limit(perSecond), perSecond), redactor: &secret.Redactor{}, dropped: dropped,
		instances: map[string]*LogBuffer{},
	}
}

// AddInstance adds an instance that runs in the process: the pipe redacts its
// secrets from now on and keeps its lines in r.
func (b *LogPipe) AddInstance(instance string, redactor *secret.Redactor, r *LogBuffer) {
	b.redactor.AddAll(redactor)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.instances[instance] = r
}

// RemoveInstance removes an instance that has left the process. The last one
// stays, so that the final lines have an owner.
func (b *LogPipe) RemoveInstance(instance string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.instances) > 1 {
		delete(b.instances, instance)
	}
}

// instanceOf returns the instance of a line: the named one or the only one in the
// process, otherwise "". The caller holds the lock.
func (b *LogPipe) instanceOf(named string) string {
	if b.instances[named] != nil {
		return named
	}
	if len(b.instances) == 1 {
		for name := range b.instances {
			return name
		}
	}
	return ""
}

// buffer keeps a line for `guidon plugin logs`, under its instance or, when that
// is unknown, under all of them. The caller holds the lock.
func (b *LogPipe) buffer(instance string, l Line) {
	if r := b.instances[instance]; r != nil {
		r.add(l)
		return
	}
	for _, r := range b.instances {
		r.add(l)
	}
}

// read copies r until it ends. Standard error is always read to the end, so that a
// plugin never blocks on its log.
func (b *LogPipe) read(r io.Reader) {
	b.readFrom(bufio.NewReaderSize(r, maxLogLine), "stderr")
	b.flush()
}

func (b *LogPipe) readFrom(in *bufio.Reader, stream string) {
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

// line processes one line; it does not retain the slice.
func (b *LogPipe) line(line []byte, stream string) {
	content := b.redactor.Redact(strings.ToValidUTF8(strings.TrimRight(string(line), "\r\n"), "�"))
	if content == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keepTail(content)
	if len(b.panicked) > 0 || isPanic(content) {
		if b.firstFail == "" {
			b.firstFail = text.Ellipsis(content, 1024)
		}
		if len(b.panicked) < maxPanic {
			b.panicked = append(b.panicked, content)
		}
		return
	}
	if !b.limit.AllowN(time.Now(), min(1+len(content)/logLineBytes, b.limit.Burst())) {
		b.lost++
		b.dropped(b.instanceOf(""), 1)
		return
	}
	if b.lost > 0 && time.Since(b.lostAt) > time.Second {
		b.log.Warn("plugin log lines dropped", zap.Int("lines", b.lost))
		b.lost, b.lostAt = 0, time.Now()
	}
	b.write(content, stream)
}

// isPanic recognizes the first line of a Go panic, fatal error or fault.
func isPanic(line string) bool {
	for _, start := range []string{"panic: ", "fatal error: ", "SIGSEGV: ", "SIGBUS: ", "SIGABRT: ", "SIGILL: ", "SIGFPE: "} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return false
}

func (b *LogPipe) keepTail(content string) {
	if len(b.last) == tailLines {
		b.last = append(b.last[:0], b.last[1:]...)
	}
	b.last = append(b.last, text.Ellipsis(content, 1024))
}

// tail returns the last lines of the process, and before them the first line of its panic.
func (b *LogPipe) tail() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	if b.firstFail != "" && !slices.Contains(b.last, b.firstFail) {
		out = append(out, b.firstFail)
	}
	return append(out, b.last...)
}

// flush writes a collected panic and the count of dropped lines at the end of the
// stream.
func (b *LogPipe) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.panicked) > 0 {
		b.buffer("", Line{At: time.Now().UTC(), Level: "error", Message: text.Ellipsis(b.panicked[0], maxLogValue)})
		b.log.Error(b.panicked[0], append(instanceField(b.instanceOf("")), zap.String("stack", strings.Join(b.panicked[1:], "\n")))...)
	}
	if b.lost > 0 {
		b.log.Warn("plugin log lines dropped", zap.Int("lines", b.lost))
	}
	b.panicked, b.lost = nil, 0
}

// write logs one line, with its level and fields when it is JSON in the form of
// log/slog or hclog.
func (b *LogPipe) write(content, stream string) {
	fields := map[string]any{}
	if content[0] != '{' || json.Unmarshal([]byte(content), &fields) != nil {
		instance := b.instanceOf("")
		b.buffer(instance, Line{At: time.Now().UTC(), Level: "info", Message: text.Ellipsis(content, maxLogValue)})
		b.log.Info(text.Ellipsis(content, maxLogValue), append(instanceField(instance), zap.Bool("raw", true), zap.String("stream", stream))...)
		return
	}
	level := zapcore.InfoLevel
	if name := removeString(fields, "level", "@level"); name != "" {
		if strings.EqualFold(name, "trace") {
			name = "debug"
		}
		if parsed, err := zapcore.ParseLevel(strings.ToLower(name)); err == nil && parsed <= zapcore.ErrorLevel {
			level = parsed
		} else {
			level = zapcore.ErrorLevel
		}
	}
	message := removeString(fields, "msg", "message", "@message")
	removeString(fields, "time", "ts", "@timestamp")
	instance := b.instanceOf(removeString(fields, "instance"))
	for key, value := range fields {
		if s, ok := value.(string); ok {
			fields[key] = text.Ellipsis(s, maxLogValue)
		}
	}
	b.buffer(instance, Line{At: time.Now().UTC(), Level: level.String(), Message: text.Ellipsis(message, maxLogValue), Fields: fields})
	entry := b.log.Check(level, message)
	if entry == nil {
		return
	}
	out := instanceField(instance)
	for key, value := range fields {
		out = append(out, zap.Any(key, value))
	}
	entry.Write(out...)
}

// instanceField returns the log field of an instance, none for "".
func instanceField(instance string) []zap.Field {
	if instance == "" {
		return nil
	}
	return []zap.Field{zap.String("instance", instance)}
}

// removeString removes the first of the keys that holds a string and returns it.
func removeString(fields map[string]any, keys ...string) string {
	for _, key := range keys {
		if value, ok := fields[key].(string); ok {
			delete(fields, key)
			return value
		}
	}
	return ""
}
