package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	_ "modernc.org/sqlite" // opens the file of a journal

	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/journal/mark"
	"github.com/guidonhq/guidon/core/recovery"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func config() journal.Config {
	cfg := journal.DefaultConfig()
	cfg.MinFreeBytes = 0
	return cfg
}

// state is the directory of a journal whose process was killed, and what it had
// acknowledged.
type state struct {
	files map[string][]byte
	acked map[uint64]string
	done  uint64 // of the reader
}

// kill returns the state of a journal with records in the file and in its log.
func kill(t *testing.T, records, folded int) state {
	t.Helper()
	dir, ctx := t.TempDir(), context.Background()
	s := state{files: map[string][]byte{}, acked: map[uint64]string{}}
	open := func() journal.Journal {
		j, err := journal.Open(config(), dir, zap.NewNop(), nil)
		must(t, err)
		return j
	}
	j := open()
	_, err := j.Register(ctx, "reader", journal.Begin)
	must(t, err)
	random := rand.New(rand.NewPCG(3, 4))
	for n := range records {
		if n == folded {
			must(t, j.Close(ctx))
			j = open()
		}
		data := fmt.Sprintf("record %d ", n)
		for len(data) < 100+random.IntN(3000) {
			data += strconv.FormatUint(random.Uint64(), 36)
		}
		seq, err := j.Append(ctx, []byte(data))
		must(t, err)
		s.acked[seq] = data
	}
	s.done = uint64(records / 5)
	must(t, j.Commit(ctx, "reader", journal.Position{Seq: s.done}))
	path := filepath.Join(dir, "journal")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		m, _, err := mark.Read(filepath.Join(path, journal.MarkName))
		if err == nil && m.Last == uint64(records) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the mark is at %d (%v), want %d", m.Last, err, records)
		}
	}
	entries, err := os.ReadDir(path)
	must(t, err)
	for _, e := range entries {
		if s.files[e.Name()], err = os.ReadFile(filepath.Join(path, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	must(t, j.Close(ctx))
	return s
}

// damage writes the state into a directory, with one file damaged by the seed.
func (s *state) damage(t *testing.T, dir string, seed uint64) (what string) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 99))
	names := []string{"journal.db", "journal.db", "journal.db-wal", "journal.db-wal", "journal.db-wal", "journal.db-shm", "journal.mark"}
	name := names[random.IntN(len(names))]
	content := append([]byte(nil), s.files[name]...)
	at := random.IntN(len(content))
	removed := false
	switch kind := random.IntN(20); {
	case kind < 12:
		bit := random.IntN(8)
		content[at] ^= 1 << bit
		what = fmt.Sprintf("%s: bit %d of byte %d flipped", name, bit, at)
	case kind < 15:
		end := min(len(content), at+1+random.IntN(8000))
		clear(content[at:end])
		what = fmt.Sprintf("%s: bytes %d to %d zeroed", name, at, end)
	case kind < 18:
		content = content[:at]
		what = fmt.Sprintf("%s: truncated to %d bytes", name, at)
	default:
		removed = true
		what = name + ": removed"
	}
	must(t, os.MkdirAll(filepath.Join(dir, "journal"), 0o700))
	for other, intact := range s.files {
		if other == name {
			if intact = content; removed {
				continue
			}
		}
		must(t, os.WriteFile(filepath.Join(dir, "journal", other), intact, 0o600))
	}
	return what
}

// read reads everything as a reader does: over damaged ranges.
func read(t *testing.T, j journal.Journal, after uint64) (got map[uint64]string, lost map[uint64]bool) {
	t.Helper()
	got, lost = map[uint64]string{}, map[uint64]bool{}
	for {
		records, err := j.Read(context.Background(), after, 100, 1<<20)
		if d, ok := errors.AsType[*journal.DamagedError](err); ok {
			if d.Last-d.First > 10_000 {
				t.Fatalf("%d records are reported lost", d.Last-d.First+1)
			}
			for seq := d.First; seq <= d.Last; seq++ {
				lost[seq] = true
			}
			after = d.Last
			continue
		}
		must(t, err)
		if len(records) == 0 {
			return got, lost
		}
		for _, r := range records {
			after, got[r.Seq] = r.Seq, string(r.Data)
		}
	}
}

// seeds is the number of seeds: 30, or $GUIDON_DAMAGE_SEEDS.
func seeds(t *testing.T) (n int) {
	t.Helper()
	n = 30
	if text := os.Getenv("GUIDON_DAMAGE_SEEDS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		must(t, err)
	}
	return n
}

// TestDamage damages the files of a killed journal, one seed after the other. Each
// acknowledged record is read unchanged, or lies in a range that is reported, or
// the start is refused with the command that repairs the journal; after the repair
// the same holds. New records are never mistaken for old ones.
func TestDamage(t *testing.T) {
	t.Parallel()
	s := kill(t, 400, 250)
	outcomes := map[string]int{}
	for seed := range seeds(t) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			dir := t.TempDir()
			what := s.damage(t, dir, uint64(seed))
			outcome := s.account(t, dir)
			if t.Failed() {
				t.Logf("seed %d: %s: %s", seed, what, outcome)
			}
			outcomes[outcome]++
		})
	}
	t.Log(outcomes)
}

func (s *state) account(t *testing.T, dir string) (outcome string) {
	t.Helper()
	core, logs := observer.New(zap.WarnLevel)
	j, err := journal.Open(config(), dir, zap.New(core), nil)
	if err != nil {
		if !strings.Contains(err.Error(), "guidon journal repair") {
			t.Fatalf("refused without a way out: %v", err)
		}
		r, err := recovery.RepairJournal(context.Background(), config(), dir, false)
		must(t, err)
		if r.Repaired == "" {
			t.Fatalf("nothing was repaired: %+v", r)
		}
		if j, err = journal.Open(config(), dir, zap.New(core), nil); err != nil {
			t.Fatalf("after a repair: %v", err)
		}
		outcome = "refused, repaired, "
	}
	defer func() { must(t, j.Close(context.Background())) }()
	stats, err := j.Stats(context.Background())
	must(t, err)
	if stats.Previous != nil {
		if stats.Previous.Last != uint64(len(s.acked)) || logs.FilterMessageSnippet("new journal created").Len() == 0 {
			t.Fatalf("a new journal with the previous one %+v and %d log lines", stats.Previous, logs.Len())
		}
		return outcome + "new journal announced"
	}
	fresh, err := j.Append(context.Background(), []byte("fresh"))
	must(t, err)
	after := s.done
	if len(stats.Readers) == 0 {
		after = stats.First - 1
	}
	got, lost := read(t, j, after)
	if got[fresh] != "fresh" || s.acked[fresh] != "" {
		t.Errorf("a new record is number %d and read back as %.20q", fresh, got[fresh])
	}
	missing := 0
	for seq := after + 1; seq <= uint64(len(s.acked)); seq++ {
		switch data, ok := got[seq]; {
		case ok && data != s.acked[seq]:
			t.Errorf("record %d is changed", seq)
		case !ok && !lost[seq]:
			t.Errorf("record %d is missing without a report", seq)
		case !ok:
			missing++
		}
	}
	if missing == 0 {
		return outcome + "nothing lost"
	}
	if logs.FilterMessage("journal range damaged").Len() == 0 {
		t.Errorf("%d records are lost without a log line", missing)
	}
	return outcome + "range reported"
}
