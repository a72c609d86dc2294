package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/sdk"
)

// openPartition returns a partition of a sink once it is open.
func openPartition(t *testing.T, s *host.SinkInstance, number int, committed uint64) *host.SinkPartition {
	t.Helper()
	p := s.Partition(number)
	p.Resume(committed)
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

func mustCommit(t *testing.T, p *host.SinkPartition, b *sdk.Batch) {
	t.Helper()
	if result, err := p.Write(t.Context(), b); err != nil || result.Outcome != sdk.Committed {
		t.Fatalf("%+v, %v", result, err)
	}
}

// countLines returns how many lines of a file have a prefix.
func countLines(t *testing.T, path, prefix string) (n int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// Each partition of a sink is an instance of its own in one process, with numbers of its
// own. It is opened again after the process has died, and closed with its last caller.
func TestSinkHasASessionForEachPartition(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	r := start(t, config(instance("p", "probe", map[string]any{"trace": trace})))
	s := r.sink(t)
	one, two := openPartition(t, s, 1, 40), openPartition(t, s, 2, 0)
	mustCommit(t, one, batch("a", 40, 3))
	mustCommit(t, two, batch("b", 0, 5))
	for _, want := range []string{"open p 0\n", "open p@1 40\n", "open p@2 0\n"} {
		if countLines(t, trace, want) != 1 {
			t.Errorf("%q is missing", want)
		}
	}
	if one.CommittedThrough() != 43 || two.CommittedThrough() != 5 || s.CommittedThrough() != 0 || one.Session() != 1 {
		t.Errorf("committed through %d, %d and %d in session %d", one.CommittedThrough(), two.CommittedThrough(), s.CommittedThrough(), one.Session())
	}
	if one.Name() != "p" {
		t.Errorf("the name is %s", one.Name())
	}
	if _, err := one.Write(t.Context(), batch("die", 43, 1)); err == nil {
		t.Fatal("a process that dies has answered")
	}
	if _, err := two.Write(t.Context(), batch("c", 5, 1)); err == nil {
		t.Fatal("a partition that is not open has answered")
	}
	for _, p := range []*host.SinkPartition{one, two} {
		if err := p.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mustCommit(t, one, batch("d", 43, 1))
	mustCommit(t, two, batch("c", 5, 1))
	if countLines(t, trace, "open p@1 43\n") != 1 || countLines(t, trace, "open p@2 5\n") != 1 || one.Session() != 2 {
		t.Errorf("not opened again, session %d", one.Session())
	}
	if _, err := two.Write(t.Context(), batch("lost", 6, 1)); err != nil {
		t.Fatal(err)
	}
	if err := two.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, two, batch("e", 6, 1))
	if countLines(t, trace, "open p@2 6\n") != 1 || countLines(t, trace, "open p@1") != 2 {
		t.Error("a partition that lost its connection was not opened again, or others were")
	}
	closed := countLines(t, trace, "close\n")
	one.Close(t.Context())
	if n := countLines(t, trace, "close\n"); n != closed+1 {
		t.Errorf("closed %d times", n-closed)
	}
	if _, err := one.Write(t.Context(), batch("f", 44, 1)); err == nil {
		t.Error("a partition that was closed has answered")
	}
	if got := s.Session(); got != 2 {
		t.Errorf("the sink was opened %d times", got)
	}
}

// The staged records of a partition are committed before its process ends.
func TestPartitionsAreFlushedBeforeAnUpgrade(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	r := start(t, config(instance("p", "stager", map[string]any{"trace": trace})))
	p := openPartition(t, r.sink(t), 3, 6)
	if result, err := p.Write(t.Context(), batch("staged", 6, 4)); err != nil || result.Outcome != sdk.Staged {
		t.Fatalf("%+v, %v", result, err)
	}
	if err := r.Apply(t.Context(), config(instance("p", "stager", map[string]any{"trace": trace, "number": 1}))); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if err := p.Ready(t.Context()); err != nil {
			return err.Error()
		}
		if p.Session() < 2 {
			return "not upgraded"
		}
		return ""
	})
	if countLines(t, trace, "flush 10\n") == 0 || countLines(t, trace, "open p@3 10\n") != 1 {
		text, _ := os.ReadFile(trace)
		t.Errorf("not flushed, or opened behind the flush:\n%s", text)
	}
}

// A plugin that must not serve an instance twice writes all partitions in one session, with
// numbers that ascend.
func TestExclusiveSinkHasOneSession(t *testing.T) {
	t.Parallel()
	for _, use := range []string{"exclusive", "single"} {
		trace := filepath.Join(t.TempDir(), "trace")
		r := start(t, config(instance("p", use, map[string]any{"trace": trace})))
		s := r.sink(t)
		one, two := openPartition(t, s, 1, 40), openPartition(t, s, 2, 0)
		mustCommit(t, one, batch("a", 40, 3))
		mustCommit(t, two, batch("b", 0, 5))
		mustCommit(t, one, batch("c", 43, 1))
		if n := countLines(t, trace, "open "); n != 1 {
			t.Errorf("%s: opened %d times", use, n)
		}
		if s.CommittedThrough() != 9 {
			t.Errorf("%s: committed through %d", use, s.CommittedThrough())
		}
		one.Close(t.Context())
		mustCommit(t, two, batch("d", 5, 1))
	}
}
