package journal_test

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal"
)

var crashRounds = flag.Int("crash.rounds", 4, "how often TestCrash kills its child")

const (
	crashDir       = "GUIDON_TEST_JOURNAL_CRASH" // set for the child: where the journal is
	crashProducers = 16
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		if err := crashChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// crashBody is the record of that name: what it holds follows from the name,
// so that a reader can tell whether it is whole.
func crashBody(name string) []byte {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name)
	random := rand.New(rand.NewPCG(h.Sum64(), 1))
	body := append([]byte(name), '\n')
	for n := random.IntN(8000); n > 0; n-- {
		body = append(body, "abcdefgh"[random.IntN(8)])
	}
	if random.IntN(50) == 0 {
		body = bytes.Repeat(body, 20)
	}
	return body
}

// crashChild appends and follows until it is killed, and says on standard
// output what was acknowledged to it: "a NUMBER NAME" or "c NUMBER COUNT".
func crashChild(dir string) error {
	j, err := journal.Open(testConfig(), dir, zap.NewNop(), nil)
	if err != nil {
		return err
	}
	ctx := context.Background()
	p, err := j.Register(ctx, "reader", journal.Begin)
	if err != nil {
		return err
	}
	failed := make(chan error, crashProducers+1)
	for n := range crashProducers {
		go func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("%d/%d/%d", os.Getpid(), n, i)
				seq, err := j.Append(ctx, crashBody(name))
				if err != nil {
					failed <- err
					return
				}
				_, _ = fmt.Printf("a %d %s\n", seq, name)
			}
		}()
	}
	go func() {
		for {
			records, err := j.Read(ctx, p.Seq, 50, 1<<20)
			if err == nil && len(records) > 0 {
				p = journal.Position{Seq: records[len(records)-1].Seq, Count: p.Count + uint64(len(records))}
				err = j.Commit(ctx, "reader", p)
				_, _ = fmt.Printf("c %d %d\n", p.Seq, p.Count)
			}
			if err == nil {
				err = j.Wait(ctx, p.Seq)
			}
			if err != nil {
				failed <- err
				return
			}
		}
	}()
	return <-failed
}

// crashLog holds the acknowledgements of the children of all rounds.
type crashLog struct {
	acked  map[string]uint64 // number by name
	cursor journal.Position
}

// listen notes what the child says until it ends. A last line without its end
// was not said.
func (l *crashLog) listen(t *testing.T, out io.Reader, first func()) {
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		var seq, count uint64
		var name string
		if _, err := fmt.Sscanf(line, "a %d %s\n", &seq, &name); err == nil {
			l.acked[name] = seq
			first()
		} else if _, err := fmt.Sscanf(line, "c %d %d\n", &seq, &count); err == nil {
			l.cursor = journal.Position{Seq: seq, Count: count}
		} else {
			t.Errorf("the child said %q", line)
		}
	}
}

// round starts a child, lets it work for a while and kills it.
func (l *crashLog) round(t *testing.T, dir string) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashDir+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	var once sync.Once
	l.listen(t, out, func() {
		once.Do(func() {
			time.AfterFunc(time.Duration(10+rand.IntN(200))*time.Millisecond, func() { _ = child.Process.Kill() })
		})
	})
	if err := child.Wait(); err == nil || child.ProcessState.Success() || child.ProcessState.Exited() {
		t.Fatalf("the child was not killed but ended by itself: %v", err)
	}
}

// check opens what the child left and closes it again.
func (l *crashLog) check(t *testing.T, dir string, round int) {
	t.Helper()
	j := open(t, testConfig(), dir, journal.Hooks{})
	seen := map[string]uint64{}
	each(t, j, func(r journal.Record) {
		name, _, _ := bytes.Cut(r.Data, []byte("\n"))
		if !bytes.Equal(r.Data, crashBody(string(name))) {
			t.Fatalf("record %d (%s) is not what was appended", r.Seq, name)
		}
		if other, ok := seen[string(name)]; ok {
			t.Fatalf("%s is there twice, as %d and %d", name, other, r.Seq)
		}
		seen[string(name)] = r.Seq
	})
	for name, seq := range l.acked {
		if seen[name] != seq {
			t.Fatalf("%s was acknowledged as record %d and is now record %d", name, seq, seen[name])
		}
	}
	if extra, most := len(seen)-len(l.acked), round*crashProducers; extra > most {
		t.Fatalf("%d records were never acknowledged, at most %d can have been on their way", extra, most)
	}
	p, err := j.Register(context.Background(), "reader", journal.End)
	must(t, err)
	if p.Before(l.cursor) || p.Count < l.cursor.Count {
		t.Fatalf("the cursor was committed at %+v and is now at %+v", l.cursor, p)
	}
	must(t, j.Close(context.Background()))
}

// TestCrash kills a process in the middle of its work, again and again: what
// was acknowledged is there, once and whole, and cursors are where they were
// committed.
func TestCrash(t *testing.T) {
	t.Parallel()
	const perJournal = 10 // rounds, or checking would take ever longer
	for done := 0; done < *crashRounds; done += perJournal {
		dir := t.TempDir()
		log := crashLog{acked: map[string]uint64{}}
		rounds := min(perJournal, *crashRounds-done)
		for round := range rounds {
			log.round(t, dir)
			log.check(t, dir, round+1)
		}
		t.Logf("%d rounds: %d records acknowledged, all there", rounds, len(log.acked))
		must(t, os.RemoveAll(dir))
	}
}
