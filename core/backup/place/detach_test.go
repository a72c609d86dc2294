package place_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"go.uber.org/goleak"

	"github.com/guidonhq/guidon/core/backup/place"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hangingPlace hangs as a network file system without its server does: no context
// ends its calls.
type hangingPlace struct {
	place.Place
	release  chan struct{}
	inCreate bool
	written  atomic.Int64
	aborted  atomic.Bool
}

func (h *hangingPlace) Create(context.Context, string, int64) (place.File, error) {
	if h.inCreate {
		<-h.release
		return nil, syscall.EIO
	}
	return &hangingFile{h}, nil
}

type hangingFile struct{ h *hangingPlace }

func (f *hangingFile) Write(p []byte) (int, error) {
	f.h.written.Add(int64(len(p)))
	<-f.h.release
	return len(p), nil
}

func (f *hangingFile) Commit(context.Context) error { return nil }
func (f *hangingFile) Abort()                       { f.h.aborted.Store(true) }

func directory(t *testing.T) place.Place {
	t.Helper()
	p, _, err := place.Parse(t.TempDir()+"/", place.S3{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A place that hangs ends the writing after the bound; little is in memory, and the
// file is removed when the place responds again.
func TestHangingPlaceDoesNotDelay(t *testing.T) {
	t.Parallel()
	h := &hangingPlace{Place: directory(t), release: make(chan struct{})}
	f, err := place.CreateDetached(t.Context(), h, "one", 0, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := f.Write(make([]byte, 64<<20))
	if !errors.Is(err, place.ErrStalled) || accepted > 2<<20 || !strings.Contains(err.Error(), h.Path("one")) {
		t.Errorf("accepted %d bytes: %v", accepted, err)
	}
	close(h.release)
	f.Abort()
	if !h.aborted.Load() || h.written.Load() > 2<<20 {
		t.Errorf("aborted %v, written %d", h.aborted.Load(), h.written.Load())
	}
}

func TestHangingCreateAndCommit(t *testing.T) {
	t.Parallel()
	h := &hangingPlace{Place: directory(t), release: make(chan struct{}), inCreate: true}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	time.AfterFunc(200*time.Millisecond, func() { close(h.release) })
	if _, err := place.CreateDetached(ctx, h, "one", 0, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("create: %v", err)
	}
	c := &hangingPlace{Place: directory(t), release: make(chan struct{})}
	f, err := place.CreateDetached(t.Context(), c, "one", 0, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(t.Context()); !errors.Is(err, place.ErrStalled) {
		t.Errorf("commit: %v", err)
	}
	close(c.release)
	for deadline := time.Now().Add(time.Minute); !c.aborted.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the file was not removed")
		}
	}
}

// A call that hangs in the system delays neither the caller nor its stop.
func TestHangingCall(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	hang := func(context.Context) (int, error) {
		<-release
		return 0, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := place.CallDetached(ctx, directory(t), time.Minute, hang); !errors.Is(err, context.Canceled) {
		t.Errorf("the end of the context: %v", err)
	}
	if _, err := place.CallDetached(t.Context(), directory(t), 20*time.Millisecond, hang); !errors.Is(err, place.ErrStalled) {
		t.Errorf("the limit: %v", err)
	}
	n, err := place.CallDetached(t.Context(), directory(t), time.Minute, func(context.Context) (int, error) { return 7, nil })
	if n != 7 || err != nil {
		t.Errorf("%d %v", n, err)
	}
}

func TestDetachedFileIsTheSame(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("0123456789"), 300_001)
	p := directory(t)
	f, err := place.CreateDetached(t.Context(), p, "one", 0, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for part := range slices.Chunk(content, 99_999) {
		if _, err := f.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(p.Path("one")); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, want %d: %v", len(got), len(content), err)
	}
}

// A failed disk is reported by its error.
func TestErrorsOfThePlaceAreReported(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p, _, err := place.Parse(file+"/below/", place.S3{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := place.CreateDetached(t.Context(), p, "one", 0, time.Minute); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a directory below a file: %v", err)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		return
	}
	full := &fullPlace{Place: directory(t)}
	f, err := place.CreateDetached(t.Context(), full, "one", 0, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 4<<20)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk: %v", err)
	}
	f.Abort()
}

// fullPlace writes to a disk that is full.
type fullPlace struct{ place.Place }

func (fullPlace) Create(context.Context, string, int64) (place.File, error) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	return fullFile{f}, err
}

type fullFile struct{ *os.File }

func (f fullFile) Commit(context.Context) error { return f.Close() }
func (f fullFile) Abort()                       { _ = f.Close() }

// An upload that fails or is ended leaves nothing in the store.
func TestEndedUploadLeavesNoParts(t *testing.T) {
	t.Parallel()
	backend := s3mem.New()
	if err := backend.CreateBucket("backups"); err != nil {
		t.Fatal(err)
	}
	fake := gofakes3.New(backend).Server()
	var uploads atomic.Int64 // unfinished
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch {
		case r.Method == http.MethodPost && query.Has("uploads"):
			uploads.Add(1)
		case r.Method == http.MethodDelete && query.Has("uploadId"):
			uploads.Add(-1)
		}
		fake.ServeHTTP(w, r)
	}))
	defer srv.Close()
	p, _, err := place.Parse("s3://backups/", place.S3{Endpoint: srv.URL, Region: "us-east-1", AccessKey: "me", SecretKey: "hush", PathStyle: true})
	if err != nil {
		t.Fatal(err)
	}
	f, err := place.CreateDetached(t.Context(), p, "one", 0, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 20<<20)); err != nil {
		t.Fatal(err)
	}
	if uploads.Load() != 1 {
		t.Errorf("%d uploads", uploads.Load())
	}
	f.Abort()
	if uploads.Load() != 0 || len(names(t, p)) > 0 {
		t.Errorf("%d uploads, %v", uploads.Load(), names(t, p))
	}
}

// A store that accepts connections and answers nothing is one that does not respond.
func TestSilentStoreStalls(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	p, _, err := place.Parse("s3://backups/", place.S3{Endpoint: "http://" + l.Addr().String(), Region: "us-east-1", AccessKey: "me", SecretKey: "hush", PathStyle: true})
	if err != nil {
		t.Fatal(err)
	}
	f, err := place.CreateDetached(t.Context(), p, "one", 0, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 64<<20)); !errors.Is(err, place.ErrStalled) {
		t.Errorf("%v", err)
	}
	f.Abort()
}
