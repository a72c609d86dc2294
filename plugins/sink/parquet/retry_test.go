package parquet_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/plugins/sink/parquet"
	"github.com/guidonhq/guidon/sdk"
)

// memory is a storage that fails after some changes, until it is repaired.
type memory struct {
	mu     sync.Mutex
	files  map[string][]byte
	budget int  // changes until it breaks down
	late   bool // the last of them is made, and said not to be
}

var errBroken = errors.New("broken down")

func (m *memory) change(fn func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.budget == 0 {
		return errBroken
	}
	m.budget--
	fn()
	if m.budget == 0 && m.late {
		return errBroken // it was done all the same
	}
	return nil
}

func (m *memory) Put(name string, data []byte) error {
	return m.change(func() { m.files[name] = data })
}

func (m *memory) Remove(name string) error { return m.change(func() { delete(m.files, name) }) }

func (m *memory) Get(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[name], nil
}

// Whatever happens between the server and the sink (a flush that breaks off
// anywhere, one whose answer is lost, a process that dies, batches that are cut
// differently the next time) each event is in the files once in the end.
func TestAnyPatternOfRetriesLeavesEachEventOnce(t *testing.T) {
	t.Parallel()
	for range 15 {
		seed := rand.Uint64()
		retries(t, seed)
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

func retries(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	all := events(20 + r.IntN(200))
	place := &memory{files: map[string][]byte{}}
	dir := t.TempDir()
	open := func(through int) *parquet.Sink {
		s, err := try(t, inDir(dir, ""), uint64(through))
		if err != nil {
			t.Fatal(err)
		}
		s.Use(place)
		return s
	}
	committed, sent := 0, 0
	s := open(0)
	for committed < len(all) {
		place.budget = 1 << 30
		if n := len(all) - sent; n > 0 && (sent == committed || r.IntN(3) > 0) {
			n = min(n, 1+r.IntN(40))
			write(t, s, batch(all, sent, sent+n))
			sent += n
			if r.IntN(5) == 0 { // the answer is lost: again from there
				sent -= n
			}
			continue
		}
		if r.IntN(2) == 0 {
			place.budget, place.late = r.IntN(12), r.IntN(2) == 0
		}
		result, err := s.Flush(t.Context(), sdk.FlushRequest{UpTo: uint64(sent)})
		if heard := r.IntN(3) > 0; err == nil && heard {
			if result.CommittedThrough < uint64(sent) {
				t.Fatalf("committed through %d of %d", result.CommittedThrough, sent)
			}
			committed = sent
			continue
		}
		sent = committed
		if r.IntN(2) == 0 {
			s = open(committed)
		}
	}
	isOnce(t, rowsIn(t, place.files), all)
}

// A server whose data is gone counts from 1 again: what it wrote in its earlier
// life stays.
func TestNumbersThatBeginAnewTouchNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before, after := events(10), events(10)
	s := opened(t, inDir(dir, ""))
	write(t, s, batch(before, 0, 10))
	flush(t, s, 10)
	old := filesIn(t, dir)
	s = opened(t, inDir(dir, ""))
	write(t, s, batch(after, 0, 10))
	flush(t, s, 10)
	now := filesIn(t, dir)
	isOnce(t, rowsIn(t, now), append(before, after...))
	for name := range maps.Keys(old) {
		if _, there := now[name]; !there {
			t.Errorf("%s is gone", name)
		}
	}
}

// A dead letter that is sent again has the number it had. It is answered, though
// the sink had it all along.
func TestADeadLetterThatIsSentAgainIsThereOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := opened(t, inDir(dir, ""))
	all := events(10)
	write(t, s, batch(all, 0, 10))
	flush(t, s, 10)
	s = opened(t, inDir(dir, ""))
	write(t, s, batch(all, 0, 1))
	flush(t, s, 1)
	isOnce(t, rowsIn(t, filesIn(t, dir)), all)
}

// The answer to a flush is lost, and the same process is sent everything again:
// it knows that it is safe.
func TestWhatTheLastFlushMadeSafeIsNotHeldAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := opened(t, inDir(dir, ""))
	all := events(30)
	write(t, s, batch(all, 0, 20))
	flush(t, s, 20)
	r, err := s.Write(t.Context(), batch(all, 0, 10))
	if err != nil || r.Duplicates != 10 || r.StagedEvents != 0 {
		t.Errorf("%+v %v", r, err)
	}
	flush(t, s, 10)
	write(t, s, batch(all, 10, 30))
	flush(t, s, 30)
	isOnce(t, rowsIn(t, filesIn(t, dir)), all)
}

// An unreadable file does not stop the sink.
func TestAFileThatCannotBeReadIsWrittenAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := opened(t, inDir(dir, ""))
	all := events(10)
	write(t, s, batch(all, 0, 10))
	flush(t, s, 10)
	for name := range filesIn(t, dir) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("no"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the notes are broken, then the files
		s = opened(t, inDir(dir, ""))
		write(t, s, batch(all, 0, 10))
		flush(t, s, 10)
		isOnce(t, rowsIn(t, filesIn(t, dir)), all)
		for name := range filesIn(t, dir) {
			if !strings.HasPrefix(name, parquet.Own) {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("no"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
