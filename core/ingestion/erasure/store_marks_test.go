package erasure

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/persons"
)

// TestMarksAreTheLatest writes the marks of random erasures and compares them with a plain map.
func TestMarksAreTheLatest(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, testMarks)
}

func testMarks(t *testing.T, d *db.DB) {
	t.Helper()
	s, key := &store{d}, []byte("key")
	type markKey struct {
		modelID
		journal string
	}
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 9))
		name := func(prefix string, n int) string { return fmt.Sprint(prefix, seed, "-", r.IntN(n)) }
		model := map[markKey]mark{}
		var written []*Erasure
		for range 12 {
			var list []*Erasure
			for range 1 + r.IntN(3) {
				e := &Erasure{RequestedAt: time.UnixMicro(1_700_000_000_000_000 + r.Int64N(9)).UTC()}
				e.ProjectID, e.Events = 1+r.Int64N(2), r.IntN(2) == 0
				for range 1 + r.IntN(2) {
					e.DistinctIDs = append(e.DistinctIDs, name("u", 4))
				}
				list = append(list, e)
			}
			var places []place
			for i := range 1 + r.IntN(2) {
				places = append(places, place{fmt.Sprint("log ", seed, "/", i), 1 + r.Uint64N(30)})
			}
			if err := s.addMarks(t.Context(), key, list, places); err != nil {
				t.Fatal(err)
			}
			written = append(written, list...)
			for _, e := range list {
				for _, id := range e.DistinctIDs {
					for _, p := range places {
						k := markKey{modelID{e.ProjectID, id}, p.journal}
						model[k] = later(model[k], e, p.seq)
					}
				}
			}

			// The marks of a journal from a record on.
			for i := range 2 {
				journal, from := fmt.Sprint("log ", seed, "/", i), r.Uint64N(32)
				got, want := map[string]mark{}, map[string]mark{}
				err := s.marks(t.Context(), journal, from, func(project int64, h idHash, m mark) {
					got[fmt.Sprint(project, hex.EncodeToString(h[:]))] = m
				})
				for k, m := range model {
					if k.journal == journal && m.personSeq >= from {
						h := hashID(key, k.project, k.id)
						want[fmt.Sprint(k.project, hex.EncodeToString(h[:]))] = m
					}
				}
				if err != nil || !maps.Equal(got, want) {
					t.Fatalf("seed %d, %s from %d: %v (%v), want %v", seed, journal, from, got, err, want)
				}
			}

			// The marks of an id, and of an erasure.
			for range 5 {
				k := modelID{1 + r.Int64N(2), name("u", 5)}
				var want mark
				for i := range 2 {
					m := model[markKey{k, fmt.Sprint("log ", seed, "/", i)}]
					if want.personAt.Before(m.personAt) {
						want.personAt = m.personAt
					}
					if want.eventsAt.Before(m.eventsAt) {
						want.eventsAt = m.eventsAt
					}
				}
				if got, err := s.markOf(t.Context(), k.project, hashID(key, k.project, k.id)); err != nil || got != want {
					t.Fatalf("seed %d, %v: %+v (%v), want %+v", seed, k, got, err, want)
				}
			}
			e := written[r.IntN(len(written))]
			asked := &Erasure{Removal: e.Removal, RequestedAt: e.RequestedAt.Add(time.Duration(r.IntN(3)-1) * time.Microsecond)}
			asked.Events = r.IntN(2) == 0
			for i := range 2 {
				journal := fmt.Sprint("log ", seed, "/", i)
				want := true
				for _, id := range asked.DistinctIDs {
					m, ok := model[markKey{modelID{asked.ProjectID, id}, journal}]
					want = want && ok && !m.personAt.Before(asked.RequestedAt) && (!asked.Events || !m.eventsAt.Before(asked.RequestedAt))
				}
				if got, err := s.isMarked(t.Context(), key, asked, journal); err != nil || got != want {
					t.Fatalf("seed %d: %+v in %s is marked: %v (%v), want %v", seed, asked, journal, got, err, want)
				}
			}
		}
	}
}

// later is a mark after an erasure with a record: each part is the latest.
func later(m mark, e *Erasure, seq uint64) mark {
	m.personSeq = max(m.personSeq, seq)
	if m.personAt.Before(e.RequestedAt) {
		m.personAt = e.RequestedAt
	}
	if e.Events {
		m.eventsSeq = max(m.eventsSeq, seq)
		if m.eventsAt.Before(e.RequestedAt) {
			m.eventsAt = e.RequestedAt
		}
	}
	return m
}

// A database that was restored from an older backup gets the erasures of a list again, if it has
// their distinct ids.
func TestRequestAgain(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := &store{d}
		key, err := s.key(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range idsPerPage + 5 {
			if i%1000 == 0 || i > idsPerPage-3 {
				execute(t, d, fmt.Sprintf("INSERT INTO lone_distinct_ids (project_id, distinct_id) VALUES (1, 'lone%05d')", i))
			}
		}
		execute(t, d, "INSERT INTO lone_distinct_ids (project_id, distinct_id) VALUES (2, 'lone00000')")
		at := time.Unix(1_700_000_000, 0).UTC()
		record := func(project int64, id string, person, events time.Time) Record {
			h := hashID(key, project, id)
			return Record{ProjectID: project, Hash: hex.EncodeToString(h[:]), PersonAt: person, EventsAt: events}
		}
		known := &Erasure{Removal: persons.Removal{ProjectID: 1, DistinctIDs: []string{"lone02000", "lone03000"}, Events: true}, RequestedAt: at}
		if err := s.addMarks(t.Context(), key, []*Erasure{known}, []place{{"log", 5}}); err != nil {
			t.Fatal(err)
		}

		found, err := Request(t.Context(), d, []Record{
			record(1, "lone00000", at, at),
			record(1, "lone10004", at, time.Time{}),
			record(1, "gone", at, at),
			record(1, "lone02000", at, at),                       // known
			record(1, "lone03000", at.Add(time.Microsecond), at), // erased again since the backup
		})
		if err != nil || found != 3 {
			t.Errorf("%d ids were found (%v), want 3", found, err)
		}
		got := map[string]string{}
		for _, e := range openAll(t, s) {
			got[e.DistinctIDs[0]] = fmt.Sprint(e.ProjectID, len(e.DistinctIDs), e.Events, e.RequestedAt.UnixMicro()-at.UnixMicro(), e.PersonID)
		}
		want := map[string]string{"lone00000": "1 1 true 0 0", "lone10004": "1 1 false 0 0", "lone03000": "1 1 true 1 0"}
		if !maps.Equal(got, want) {
			t.Errorf("requested %v, want %v", got, want)
		}

		for name, bad := range map[string]Record{
			"no project": record(0, "u", at, at), "no time": record(1, "u", time.Time{}, at),
			"no hash": {ProjectID: 1, PersonAt: at}, "a short hash": {ProjectID: 1, PersonAt: at, Hash: "00"}, "no hexadecimal hash": {ProjectID: 1, PersonAt: at, Hash: "xy"},
		} {
			if found, err := Request(t.Context(), d, []Record{record(1, "lone00000", at.Add(time.Hour), at), bad}); err == nil || found != 0 {
				t.Errorf("%s: %d found, %v", name, found, err)
			}
		}
		if n := len(openAll(t, s)); n != 3 {
			t.Errorf("%d erasures are requested after invalid lists", n)
		}
	})
}

func openAll(t *testing.T, s *store) []Erasure {
	t.Helper()
	all, _, err := s.openErasures(t.Context(), openKey{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEachIDPages reads more distinct ids than a page has.
func TestEachIDPages(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		const n = idsPerPage + 2
		execute(t, d, fmt.Sprintf(`INSERT INTO lone_distinct_ids (project_id, distinct_id)
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT 1, 'id' || i FROM n`, n))
		seen := map[string]bool{}
		err := (&store{d}).eachID(t.Context(), 1, func(person int64, id string) error {
			if person != 0 || seen[id] {
				t.Errorf("%q of person %d comes, before: %v", id, person, seen[id])
			}
			seen[id] = true
			return nil
		})
		if err != nil || len(seen) != n {
			t.Errorf("%d ids, %v", len(seen), err)
		}
	})
}

// TestStatesOfErasures checks what is known of an erasure by its row.
func TestStatesOfErasures(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := &store{d}
		for _, c := range []struct {
			id                       string
			person                   int64
			finished                 bool
			done, requested, settled bool
		}{
			{"requested", 7, false, false, true, true},
			{"requested and done", 7, true, true, true, true},
			{"recovered", 0, false, false, false, false},
			{"recovered and done", 0, true, true, false, true},
			{"missing", -1, false, false, false, false},
		} {
			e := &Erasure{Removal: persons.Removal{ProjectID: 1, PersonID: c.person, DistinctIDs: []string{"u"}}, ID: c.id, RequestedAt: time.Now()}
			if c.person >= 0 {
				if err := s.insert(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			if c.finished {
				if err := s.finish(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			done, err1 := s.isDone(t.Context(), c.id)
			requested, err2 := s.isRequested(t.Context(), c.id)
			settled, err3 := s.isSettled(t.Context(), c.id)
			if done != c.done || requested != c.requested || settled != c.settled || err1 != nil || err2 != nil || err3 != nil {
				t.Errorf("%s: done %v, requested %v, settled %v (%v, %v, %v)", c.id, done, requested, settled, err1, err2, err3)
			}
		}
	})
}
