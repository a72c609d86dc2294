//go:build e2e && linux

package clickhouse

import (
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/plugins/sink/clickhouse/clickhousetest"
)

// A ClickHouse without space on its disk takes no events: they wait, and all of them are
// stored once when there is space again.
func TestFullDisk(t *testing.T) {
	d, disk := dbtest.Postgres(t), t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=96m"); err != nil {
		t.Fatalf("the test needs the right to mount a file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	t.Setenv("TMPDIR", disk)
	t.Run("", func(t *testing.T) {
		server := clickhousetest.StartServer(t) // its files are on the small disk
		name := database(t, server.URL)
		s, service := testStore(t, d, server.URL, name, 0)
		s.OnStored(func() {})
		storeEvents(t, service, testEvents(0, 100), 100)
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		filler := fillDisk(t, disk)
		storeEvents(t, service, testEvents(100, 5_000), 5_000)
		if err := s.Flush(t.Context()); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "No space left") {
			t.Fatalf("insertion on a full disk: %v", err)
		}
		if o, err := s.readFigures(t.Context()); err != nil || o.Events != 5_000 {
			t.Errorf("events that wait: %+v %v", o, err)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantCount(t, service, 5_100)
		if n := clickhousetest.Query(t, server.URL, "SELECT count() - uniqExact(uuid) FROM "+name+"."+eventTable); n != "0" {
			t.Errorf("%s events are stored twice", n)
		}
	})
}

// fillDisk writes a file until the disk is full, and returns its path.
func fillDisk(t *testing.T, disk string) string {
	t.Helper()
	f, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, size := range []int64{1 << 20, 4 << 10} {
		for err = nil; err == nil; {
			_, err = io.CopyN(f, zeros{}, size)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	return f.Name()
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// A user who may only read is refused with the cause, and no event is lost.
func TestReadOnlyUser(t *testing.T) {
	server, d := clickhousetest.Start(t), dbtest.Postgres(t)
	name := database(t, server)
	writer, service := testStore(t, d, server, name, 0)
	writer.OnStored(func() {})
	storeEvents(t, service, testEvents(0, 100), 100)
	if err := writer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	reader, asReader := testStoreOf(t, d, url.UserPassword("reader", "hush"), server, name, 0)
	reader.OnStored(func() {})
	storeEvents(t, asReader, testEvents(100, 100), 100)
	if err := reader.Flush(t.Context()); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "readonly mode") {
		t.Errorf("insertion without the right: %v", err)
	}
	wantCount(t, asReader, 100) // it reads
	if err := writer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCount(t, service, 200)
}

// A block that is inserted again is stored once, not only after a merge.
func TestRepeatedBlock(t *testing.T) {
	server := clickhousetest.Start(t)
	name := database(t, server)
	s, service := testStore(t, dbtest.Postgres(t), server, name, 0)
	s.OnStored(func() {})
	if err := s.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !s.modern() {
		t.Skip("this server does not know tokens: e2e/chdb has one that does")
	}
	storeEvents(t, service, testEvents(0, 100), 100)
	list := make([]event, 50)
	for i := range list {
		list[i] = event{project: 2, row: int64(10_000 + i), uuid: uuid.New(), name: "e", distinctID: "u", at: int64(i)}
	}
	for range 3 {
		if err := s.insertAll(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	if n := clickhousetest.Query(t, server, "SELECT count() FROM "+name+"."+eventTable+" WHERE project_id = 2"); n != "50" {
		t.Errorf("%s rows, want 50", n)
	}
}
