package ingestion_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// flip changes one byte of the closed journal in dir, where text begins.
func flip(t *testing.T, dir, text string) {
	t.Helper()
	path := filepath.Join(dir, "journal", "journal.db")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(content, []byte(text))
	if at < 0 {
		t.Fatalf("%q is not in the journal's file", text)
	}
	content[at] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The worker, a follower and a sink move over a damaged record, keep one dead
// letter each for it (the follower none), and process everything else once.
func TestReadersGoOnBehindADamagedRecord(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		dir := t.TempDir()
		j := openJournal(t, dir)
		for _, reader := range []string{"worker", "follower/test", "sink/warehouse"} {
			if _, err := j.Register(context.Background(), reader, journal.Begin); err != nil {
				t.Fatal(err)
			}
		}
		accept(t, j, "one", "two")
		accept(t, j, "damaged")
		accept(t, j, "three")
		if err := j.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		flip(t, dir, "damaged")

		j = openJournal(t, dir)
		st := &stage{db: d}
		w := startWorker(t, ingestion.DefaultConfig(), j, d, nil, st)
		follows := &follower{stage: stage{db: d}}
		startFollowing(t, j, d, w, follows)
		sink := &fakeSink{name: "warehouse"}
		startDeliver(t, deliverConfig(), j, d, newSinks(sink))
		accept(t, j, "four")
		const want = "one two three four"
		eventually(t, "the worker goes on", func() bool { return st.seen() == want })
		eventually(t, "the follower goes on", func() bool { return follows.seen() == want })
		eventually(t, "the sink goes on", func() bool { return sink.has() == want })
		eventually(t, "no reader is behind", func() bool {
			s, err := j.Stats(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range s.Readers {
				if r.Lag > 0 {
					return false
				}
			}
			return true
		})
		letters := deadletter.NewService(d, event.DefaultLimits(), nil)
		for _, source := range []string{"worker", "sink/warehouse"} {
			list, n, err := letters.List(context.Background(), 0, deadletter.Filter{Source: source}, 10, 0)
			if err != nil || n != 1 {
				t.Fatalf("%s: %d dead letters, want 1 (%v)", source, n, err)
			}
			if l := list[0]; l.Code != deadletter.CodeDamaged || !strings.HasSuffix(l.EventUUID, "/2-2") || !strings.Contains(string(l.Payload), `"project_id":1`) ||
				!strings.Contains(l.Message, "records 2 to 2 are damaged") || l.Class != sdk.ClassPermanent.String() {
				t.Errorf("%s: dead letter %+v %s", source, l, l.Payload)
			}
		}
		if s, err := j.Stats(context.Background()); err != nil || len(s.Damaged) != 1 {
			t.Errorf("stats list %+v (%v), want the range", s.Damaged, err)
		}
	})
}
