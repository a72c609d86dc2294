package flags_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/source"
)

// What is read since the last change equals what is read from nothing, after random
// writes through the API.
func TestDefinitionsFollowRandomChanges(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		r := rand.New(rand.NewPCG(7, 7))
		flagIDs, cohortIDs := []int64{h.create(`{"key":"first"}`).ID}, []int64{h.cohort(`{"name":"c","filters":{"properties":{"type":"AND","values":[]}}}`).ID}
		for step := range 60 {
			id, c := flagIDs[r.IntN(len(flagIDs))], cohortIDs[r.IntN(len(cohortIDs))]
			switch r.IntN(9) {
			case 0, 1:
				flagIDs = append(flagIDs, h.create(fmt.Sprintf(`{"key":"new-%d","filters":{"groups":[{"rollout_percentage":%d}]}}`, step, step)).ID)
			case 2:
				h.patch(id, `{"deleted":true}`)
			case 3:
				h.patch(id, `{"deleted":false}`)
			case 4:
				h.patch(id, fmt.Sprintf(`{"key":"renamed-%d"}`, r.IntN(5)))
			case 5:
				cohortIDs = append(cohortIDs, h.cohort(fmt.Sprintf(`{"name":"c%d","filters":{"properties":{"type":"AND","values":[]}}}`, step)).ID)
			case 6:
				h.do("PATCH", fmt.Sprintf("%s%d/", cohortsPath, c), fmt.Sprintf(`{"name":"other %d","deleted":%t}`, step, r.IntN(3) == 0))
			case 7:
				h.patch(id, fmt.Sprintf(`{"filters":{"groups":[{"properties":[{"key":"id","type":"cohort","value":%d}]}]}}`, c))
			default:
				h.patch(id, fmt.Sprintf(`{"active":%t,"name":"step %d"}`, r.IntN(2) == 0, step))
			}
			h.wantDefinitionsOfStore(step)
		}
	})
}

func (h *server) wantDefinitionsOfStore(step int) {
	h.t.Helper()
	fresh := source.New(h.store, h.cohorts, h.revisions.Store, projects{}, projects{})
	want, err := fresh.Definitions(h.t.Context(), 1)
	if err != nil {
		h.t.Fatal(err)
	}
	got, err := h.definitions.Definitions(h.t.Context(), 1)
	if err != nil {
		h.t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		h.t.Fatalf("step %d:\ngot  %+v\nwant %+v", step, got, want)
	}
	shown := map[int64]eval.Definition{}
	h.snapshots.Set(1).EachDefinition(func(_ int, d *eval.Definition) { shown[d.ID] = *d })
	for _, d := range want.Flags {
		if !reflect.DeepEqual(shown[d.ID], d) {
			h.t.Fatalf("step %d: the snapshot has %+v, want %+v", step, shown[d.ID], d)
		}
	}
	if len(shown) != len(want.Flags) {
		h.t.Fatalf("step %d: the snapshot has %d flags, want %d", step, len(shown), len(want.Flags))
	}
}

// What a transaction reads of its own writes is not kept when it fails.
func TestDefinitionsOfAFailedTransactionAreNotKept(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		h.create(`{"key":"kept"}`)
		failed := fmt.Errorf("failed")
		err := h.revisions.Change(t.Context(), 1, func(ctx context.Context) error {
			key, who := "lost", &auth.Principal{User: ada, OrgLevel: auth.LevelOwner}
			if _, err := h.service.Create(ctx, who, auth.Project{ID: 1}, flags.Input{Key: &key}); err != nil {
				return err
			}
			if d, err := h.definitions.Definitions(ctx, 1); err != nil || len(d.Flags) != 2 {
				t.Errorf("in the transaction: got %d flags, %v; want 2", len(d.Flags), err)
			}
			return failed
		})
		if err != failed { //nolint:errorlint // the error itself
			t.Fatal(err)
		}
		h.create(`{"key":"next"}`)
		h.wantDefinitionsOfStore(0)
	})
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkChangeAmong creates so many flags one by one and then changes one of them,
// each until it is in memory.
func BenchmarkChangeAmong(b *testing.B) {
	for _, size := range []int{50, 1000, 5000} {
		b.Run(fmt.Sprintf("%d_flags", size), func(b *testing.B) {
			h := newServer(b, dbtest.SQLite(b))
			project, who := auth.Project{ID: 1}, &auth.Principal{User: ada, OrgLevel: auth.LevelOwner}
			began := cpuTime(b)
			for i := range size {
				h.createDirectly(who, project, fmt.Sprintf("flag-%d", i))
			}
			created := float64((cpuTime(b) - began).Microseconds())
			b.Run("creation", func(b *testing.B) { b.ReportMetric(created/float64(size), "cpu-µs/flag") })
			for _, kind := range []string{"filters", "active"} {
				b.Run(kind, func(b *testing.B) {
					n := 0
					began := cpuTime(b)
					for b.Loop() {
						n++
						in := flags.Input{Filters: json.RawMessage(fmt.Sprintf(`{"groups":[{"rollout_percentage":%d}]}`, n%100))}
						if on := n%2 == 0; kind == "active" {
							in = flags.Input{Active: &on}
						}
						if _, err := h.service.Update(b.Context(), who, project, int64(1+n%size), in); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64((cpuTime(b)-began).Microseconds())/float64(b.N), "cpu-µs/op")
				})
			}
		})
	}
}
