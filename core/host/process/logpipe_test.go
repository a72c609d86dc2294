package process_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/host/process"
)

func TestLinesAboveTheLimitAreDroppedAndCounted(t *testing.T) {
	t.Parallel()
	core, seen := observer.New(zapcore.DebugLevel)
	dropped := 0
	l := process.NewLogPipe(zap.New(core), 10, func(_ string, n int) { dropped += n })
	for i := range 1000 {
		l.Line(fmt.Appendf(nil, "line %d\n", i))
	}
	l.End()
	if n := seen.FilterMessageSnippet("line ").Len(); n < 10 || n > 20 || dropped != 1000-n {
		t.Errorf("%d lines, %d dropped", n, dropped)
	}
	if seen.FilterMessage("plugin log lines dropped").Len() != 1 {
		t.Error("the log does not report the dropped lines")
	}
	if tail := l.Tail(); len(tail) != 20 || tail[19] != "line 999" {
		t.Errorf("tail %v", tail)
	}
}

// TestLongLinesCountBySize checks that a flood of long lines is limited by its size.
func TestLongLinesCountBySize(t *testing.T) {
	t.Parallel()
	core, seen := observer.New(zapcore.DebugLevel)
	l := process.NewLogPipe(zap.New(core), 10, func(string, int) {})
	for range 1000 {
		l.Line([]byte("long " + strings.Repeat("x", 4500) + "\n"))
	}
	l.End()
	if n := seen.FilterMessageSnippet("long ").Len(); n < 2 || n > 4 {
		t.Errorf("%d lines of 4.5 KB at 10 lines a second", n)
	}
}

// The stack after a fatal error is longer than the tail, which still names the cause.
func TestTailKeepsTheFirstLineOfAPanic(t *testing.T) {
	t.Parallel()
	for _, cause := range []string{"fatal error: out of memory", "SIGSEGV: segmentation violation", "panic: no luck"} {
		l := process.NewLogPipe(zap.NewNop(), 10, func(string, int) {})
		l.Line([]byte("before"))
		l.Line([]byte(cause))
		for i := range 50 {
			l.Line(fmt.Appendf(nil, "frame %d", i))
		}
		l.End()
		if tail := l.Tail(); len(tail) != 21 || tail[0] != cause || tail[20] != "frame 49" {
			t.Errorf("%s: %q", cause, tail)
		}
	}
}

// endless is a line of n bytes.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	n := min(len(p), e.left)
	if n == 0 {
		return 0, io.EOF
	}
	for i := range p[:n] {
		p[i] = 'x'
	}
	e.left -= n
	return n, nil
}

func TestLongLineUsesLittleMemory(t *testing.T) {
	core, seen := observer.New(zapcore.DebugLevel)
	l := process.NewLogPipe(zap.New(core), 1000, func(string, int) {})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l.Read(io.MultiReader(&endless{100 << 20}, strings.NewReader("\nthe next line\n")))
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 10<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
	if seen.Len() != 2 || seen.All()[1].Message != "the next line" {
		t.Errorf("%d lines", seen.Len())
	}
}

// FuzzLog checks that no line causes a panic or more than one record.
func FuzzLog(f *testing.F) {
	for _, line := range []string{
		`{"level":"INFO","msg":"x","a":1}`, `{"@level":"trace","@message":"y"}`, `{"level":"panic"}`, `{"level":7}`, "panic: x",
		"{", "\xff\xfe", "", "[ERROR] x",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		core, seen := observer.New(zapcore.DebugLevel)
		l := process.NewLogPipe(zap.New(core), 1000, func(string, int) {})
		l.Line(line)
		l.Line([]byte("and another"))
		l.End()
		if seen.Len() > 2 {
			t.Errorf("%d records of two lines", seen.Len())
		}
	})
}
