package delivery

import (
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
)

// listedSinks is a node with a fixed list of sinks.
type listedSinks []Sink

func (l listedSinks) Sinks() []Sink          { return l }
func (listedSinks) Changed() <-chan struct{} { return nil }

func testService(t *testing.T, cfg Config, sinks ...Sink) *Service {
	t.Helper()
	d, err := NewService(cfg, event.DefaultLimits(), logOf(), dbtest.SQLite(t), listedSinks(sinks), NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCursorsOfRemovedSinksAreForgotten: a cursor is removed when its sink has been missing for as long as the
// configuration says, here and elsewhere.
func TestCursorsOfRemovedSinksAreForgotten(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.ForgetAfter = time.Hour
	d := testService(t, cfg)
	d.running["here"] = &delivery{}
	elsewhere := true
	d.elsewhere = func(name string) bool { return name == "elsewhere" && elsewhere }
	var readers []journal.ReaderStats
	for _, name := range []string{"pipeline", "sink/here", "historical/sink/here", "sink/elsewhere", "sink/gone", "historical/sink/gone"} {
		readers = append(readers, journal.ReaderStats{Name: name})
	}
	pass := func(age time.Duration) { // as if the missing ones had been seen so long ago
		for name, since := range d.missing {
			d.missing[name] = since.Add(-age)
		}
	}
	for _, c := range []struct {
		name  string
		after time.Duration
		want  []string
	}{
		{"at first", 0, nil},
		{"soon", 59 * time.Minute, nil},
		{"after an hour", time.Minute, []string{"sink/gone", "historical/sink/gone"}},
		{"again, if they are still there", 0, nil},
		{"after another hour", time.Hour, []string{"sink/gone", "historical/sink/gone"}},
	} {
		pass(c.after)
		if got := d.removedCursors(readers); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}

	// A sink that comes back is not missing, and waits for the whole time when it goes again.
	d.running["gone"] = &delivery{}
	pass(time.Hour)
	if got := d.removedCursors(readers); got != nil {
		t.Errorf("removed %v of sinks that are back", got)
	}
	delete(d.running, "gone")
	elsewhere = false
	if got := d.removedCursors(readers); got != nil {
		t.Errorf("removed %v at once", got)
	}
	pass(time.Hour)
	if got := d.removedCursors(readers); !slices.Equal(got, []string{"sink/elsewhere", "sink/gone", "historical/sink/gone"}) {
		t.Errorf("removed %v", got)
	}
}

func TestSinksAreRegisteredBeforeTheirDelivery(t *testing.T) {
	t.Parallel()
	for start, want := range map[string]journal.Start{"end": journal.End, "begin": journal.Begin} {
		cfg := DefaultConfig()
		cfg.Start = start
		d := testService(t, cfg, &scriptedSink{}, &scriptedSink{})
		var readers []string
		err := d.Register(func(reader string, from journal.Start) error {
			if readers = append(readers, reader); from != want {
				t.Errorf("%s begins at %v, want %v", reader, from, want)
			}
			return errors.New("no journal")
		})
		if !slices.Equal(readers, []string{"sink/test", "sink/test"}) || err == nil || err.Error() != "register the sink test: no journal\nregister the sink test: no journal" {
			t.Errorf("registered %v: %v", readers, err)
		}
	}
	if d := testService(t, DefaultConfig(), &scriptedSink{}); !slices.Equal(d.Names(), []string{"test"}) || d.Paused("test") != nil {
		t.Errorf("sinks %v", d.Names())
	}
}

// TestPausesOfSinks pauses and resumes a sink; an unknown one has no pause.
func TestPausesOfSinks(t *testing.T) {
	t.Parallel()
	d := testService(t, DefaultConfig(), &scriptedSink{})
	if err := d.Pause(t.Context(), "test", "maintenance"); err != nil {
		t.Fatal(err)
	}
	if p := d.Paused("test"); p == nil || p.Reason != "maintenance" || p.At.IsZero() {
		t.Errorf("paused: %+v", p)
	}
	if err := d.Resume(t.Context(), "test"); err != nil || d.Paused("test") != nil {
		t.Errorf("%v, paused: %+v", err, d.Paused("test"))
	}
	if !errors.Is(d.Pause(t.Context(), "other", "x"), ErrNoSink) || !errors.Is(d.Resume(t.Context(), "other"), ErrNoSink) || d.Paused("other") != nil {
		t.Error("a sink that is not configured is paused")
	}
}
