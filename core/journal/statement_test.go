package journal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// TestFailingStatements lets one statement of the writer fail. Its requests fail, what was stored
// stays, and everything works again when the statement does.
func TestFailingStatements(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, statement string }{
		{"append", "INSERT ON blocks"},
		{"retention removes a part", "DELETE ON blocks"},
		{"retention removes all", "DELETE ON blocks"},
		{"retention notes an empty journal", "UPDATE ON head"},
		{"register", "INSERT ON readers"},
		{"commit", "INSERT ON readers"},
		{"unregister", "DELETE ON readers"},
		{"skip numbers", "UPDATE ON head"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var broken atomic.Bool
			cfg, ctx, dir := testConfig(), context.Background(), t.TempDir()
			cfg.MaxBytes = 250
			hooks := journal.Hooks{Link: func(conn *sql.Conn) {
				if !broken.Load() {
					return
				}
				_, err := conn.ExecContext(ctx, fmt.Sprintf("CREATE TEMP TRIGGER broken BEFORE %s BEGIN SELECT RAISE(ABORT, 'this statement fails'); END", c.statement))
				if err != nil {
					t.Error(err)
				}
			}}
			j := open(t, cfg, dir, hooks)
			_, err := j.Register(ctx, "reader", journal.Begin)
			must(t, err)
			fill(t, j, 5, 100)
			must(t, j.Commit(ctx, "reader", journal.Position{Seq: 4, Count: 4}))
			must(t, j.Close(ctx))
			if c.name == "retention removes all" || c.name == "retention notes an empty journal" {
				cfg.MaxBytes = 1
				j = open(t, cfg, dir, hooks)
				must(t, j.Commit(ctx, "reader", journal.Position{Seq: 5, Count: 5}))
				must(t, j.Close(ctx))
			}

			broken.Store(true)
			j = open(t, cfg, dir, hooks)
			do := func() (err error) {
				switch c.name {
				case "append":
					_, err = j.Append(ctx, []byte("new"))
				case "register":
					_, err = j.Register(ctx, "another", journal.End)
				case "commit":
					err = j.Commit(ctx, "reader", journal.Position{Seq: 5, Count: 5})
				case "unregister":
					err = j.Unregister(ctx, "reader")
				case "skip numbers":
					err = j.(journal.Comparer).Compare(ctx, stats(t, j).ID, 9)
				default:
					_, err = j.Trim(ctx)
				}
				return err
			}
			before := fmt.Sprintf("%+v", withoutFiles(stats(t, j)))
			for range 2 {
				if err := do(); !fault.Is(err, fault.Unavailable) {
					t.Errorf("got %v, want unavailable", err)
				}
			}
			s := withoutFiles(stats(t, j))
			s.Broken = nil // of a failed append
			if after := fmt.Sprintf("%+v", s); after != before {
				t.Errorf("changed to\n%s from\n%s", after, before)
			}

			broken.Store(false)
			eventually(t, "it works again", func() bool { return do() == nil })
			after := fmt.Sprintf("%+v", withoutFiles(stats(t, j)))
			if after == before {
				t.Errorf("not done: %s", after)
			}
			must(t, j.Close(ctx))
			j = open(t, cfg, dir, journal.Hooks{})
			if reopened := fmt.Sprintf("%+v", withoutFiles(stats(t, j))); c.name != "skip numbers" && reopened != after {
				t.Errorf("opened again as\n%s, was\n%s", reopened, after)
			}
		})
	}
}

// withoutFiles leaves out what depends on files and times.
func withoutFiles(s journal.Stats) journal.Stats {
	s.FileBytes, s.Incidents, s.Damaged = 0, nil, nil
	return s
}

// Appends are refused until a probe has shown that the disk can be written.
func TestProbesEndARefusal(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	var probes atomic.Int64
	logged, logs := observer.New(zap.InfoLevel)
	j, err := journal.OpenHooked(testConfig(), t.TempDir(), zap.New(logged), nil, journal.Hooks{BeforeCommit: func(appends int) error {
		if !broken.Load() {
			return nil
		}
		if appends == 0 {
			probes.Add(1)
		}
		return errors.New("input/output error")
	}})
	must(t, err)
	broken.Store(true)
	if _, err := j.Append(context.Background(), nil); code(err) != "journal_unavailable" {
		t.Errorf("append: %v", err)
	}
	eventually(t, "the disk is probed", func() bool { return probes.Load() >= 2 })
	if n := logs.FilterMessageSnippet("accepts appends again").Len(); n != 0 {
		t.Errorf("appends were accepted %d times while no write succeeds", n)
	}
	broken.Store(false)
	eventually(t, "appends are taken again", func() bool { _, err := j.Append(context.Background(), nil); return err == nil })
	if refused, accepted := logs.FilterMessageSnippet("refuses appends").Len(), logs.FilterMessageSnippet("accepts appends again").Len(); refused != 1 || accepted != 1 {
		t.Errorf("logged %d refusals and %d ends, want one each", refused, accepted)
	}
	must(t, j.Close(context.Background()))
}
