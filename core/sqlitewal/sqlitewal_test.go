package sqlitewal_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/guidonhq/guidon/core/sqlitewal"
)

const page = 4096

// crashed returns a SQLite file whose log holds commits, as after a crash.
func crashed(t *testing.T, commits int) string {
	t.Helper()
	dir := t.TempDir()
	live := filepath.Join(dir, "live.db")
	db, err := sql.Open("sqlite", "file:"+live+"?_pragma=page_size(4096)&_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	defer func() { _ = db.Close() }()
	exec := func(q string, args ...any) {
		if _, err := db.ExecContext(context.Background(), q, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TABLE t (n INTEGER PRIMARY KEY, s TEXT)")
	exec("PRAGMA wal_checkpoint(TRUNCATE)")
	for n := range commits {
		exec("INSERT INTO t VALUES (?, ?)", n, strings.Repeat(fmt.Sprint(n, " "), 300))
	}
	path := filepath.Join(dir, "crashed.db")
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(live + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// rows is the number of intact rows in a file.
func rows(t *testing.T, path string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	found, err := db.QueryContext(context.Background(), "SELECT n, s FROM t")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = found.Close() }()
	for found.Next() {
		var id int
		var text string
		if err := found.Scan(&id, &text); err != nil {
			t.Fatal(err)
		}
		if text == strings.Repeat(fmt.Sprint(id, " "), 300) {
			n++
		}
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestIntactAndTornLogsAreNotDamaged(t *testing.T) {
	t.Parallel()
	path := crashed(t, 50) + "-wal"
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(whole); cut >= 0; cut -= 1777 {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := sqlitewal.Check(path, page); err != nil || r.IsDamaged() {
			t.Fatalf("cut to %d bytes: %+v (%v), want no damage", cut, r, err)
		}
	}
	torn := append([]byte(nil), whole...)
	torn[len(torn)-100] ^= 1 // in the last transaction: it may never have been synced
	if err := os.WriteFile(path, torn, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := sqlitewal.Check(path, page); err != nil || r.IsDamaged() {
		t.Fatalf("torn end: %+v (%v), want no damage", r, err)
	}
}

// A flipped bit is corrected: not one commit is lost. The high bits of a word, whose
// place is often ambiguous, are not among those that are flipped here.
func TestFlippedBitIsCorrected(t *testing.T) {
	t.Parallel()
	const commits = 50
	path := crashed(t, commits)
	base, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	places := []int{0, 5, 9, 13, 17, 21, 25, 29, 32, 36, 40, 44, 48, 52} // every field of the headers
	random := rand.New(rand.NewPCG(7, 7))
	for range 60 {
		places = append(places, random.IntN(len(whole)*8/10))
	}
	for _, at := range places {
		damaged := append([]byte(nil), whole...)
		bit := random.IntN(8)
		if (at-32)%(24+page) >= 24 && at%4 == 3 { // the high byte of a word of a page
			at--
		}
		damaged[at] ^= 1 << bit
		copyTo := filepath.Join(t.TempDir(), "damaged.db")
		for name, content := range map[string][]byte{copyTo: base, copyTo + "-wal": damaged} {
			if err := os.WriteFile(name, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, written, err := sqlitewal.Repair(copyTo+"-wal", copyTo+".new", page, false)
		if err != nil || !r.IsDamaged() || !written || r.Dropped > 0 {
			t.Fatalf("byte %d: %+v, written %v (%v), want a repair", at, r, written, err)
		}
		if err := os.Rename(copyTo+".new", copyTo+"-wal"); err != nil {
			t.Fatal(err)
		}
		if n := rows(t, copyTo); n != commits {
			t.Fatalf("byte %d: %d of %d rows after the repair", at, n, commits)
		}
	}
}

// A frame with more damage is left out, or ends the log.
func TestDamagedFrameIsDropped(t *testing.T) {
	t.Parallel()
	path := crashed(t, 50)
	whole, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	frame := 32 + 40*(24+page)
	clear(whole[frame : frame+24+page])
	if err := os.WriteFile(path+"-wal", whole, 0o600); err != nil {
		t.Fatal(err)
	}
	r, written, err := sqlitewal.Repair(path+"-wal", path+".new", page, false)
	if err != nil || written || r.Dropped != 1 || r.LostCommits < 20 || len(r.Damaged) != 2 || r.Damaged[0] != int64(frame) {
		t.Fatalf("got %+v, written %v (%v), want one frame that cannot be corrected", r, written, err)
	}
	if _, written, err = sqlitewal.Repair(path+"-wal", path+".new", page, true); err != nil || !written {
		t.Fatal(written, err)
	}
	if err := os.Rename(path+".new", path+"-wal"); err != nil {
		t.Fatal(err)
	}
	if n := rows(t, path); n < 45 {
		t.Errorf("%d of 50 rows after the repair", n)
	}
}
