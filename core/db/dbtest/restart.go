package dbtest

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Killable is a PostgreSQL server that one test kills and starts again. It has the
// settings of a new installation, so it syncs commits to disk.
type Killable struct {
	URL string // of the database postgres

	bin, dir string
	account  account
	process  *os.Process
	ended    chan struct{} // closed when process has ended
}

// StartKillable starts a server of the installed binaries on a socket in a directory
// of its own. The server ends with tb. A machine without the binaries fails tb, also
// when GUIDON_TEST_POSTGRES names a server: that one is not killed.
func StartKillable(tb testing.TB) *Killable {
	tb.Helper()
	k := &Killable{}
	if err := k.prepare(); err != nil {
		tb.Fatalf("prepare a Postgres server: %v", err)
	}
	tb.Cleanup(func() {
		k.Kill(tb)
		if tb.Failed() {
			log, _ := os.ReadFile(filepath.Join(k.dir, "log"))
			tb.Logf("log of Postgres:\n%s", log[max(0, len(log)-4000):])
		}
		_ = os.RemoveAll(k.dir)
	})
	k.Start(tb)
	return k
}

// prepare makes the directory with a new cluster.
func (k *Killable) prepare() (err error) {
	if k.bin, err = binDir(); err != nil {
		return err
	}
	if k.account, err = unprivileged(); err != nil {
		return err
	}
	fresh, err := initialised(k.account, k.bin)
	if err != nil {
		return err
	}
	if k.dir, err = ownDir(k.account, "guidon-pg-"); err != nil {
		return err
	}
	k.URL = (&url.URL{
		Scheme: "postgres", Path: "/postgres",
		RawQuery: url.Values{"host": {k.dir}, "user": {"postgres"}, "sslmode": {"disable"}}.Encode(),
	}).String()
	return k.account.command(k.dir, "cp", "-a", fresh, filepath.Join(k.dir, "data")).Run()
}

// Start starts the server and returns when it accepts connections. Processes of a
// killed server hold the shared memory for a moment: a server that ends because of
// them is started again.
func (k *Killable) Start(tb testing.TB) {
	tb.Helper()
	k.launch(tb)
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(50 * time.Millisecond) {
		c, err := pgx.Connect(tb.Context(), k.URL)
		if err == nil {
			_ = c.Close(context.WithoutCancel(tb.Context()))
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("start Postgres: %v", err)
		}
		select {
		case <-k.ended:
			k.launch(tb)
		default:
		}
	}
}

func (k *Killable) launch(tb testing.TB) {
	tb.Helper()
	log, err := os.OpenFile(filepath.Join(k.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd := k.account.command(k.dir, filepath.Join(k.bin, "postgres"), "-D", filepath.Join(k.dir, "data"),
		"-c", "listen_addresses=", "-c", "unix_socket_directories="+k.dir, "-c", "shared_buffers=32MB")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		tb.Fatalf("start Postgres: %v", err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	k.process, k.ended = cmd.Process, ended
}

// Pid returns the process id of the server, whose child processes serve the connections.
func (k *Killable) Pid() int { return k.process.Pid }

// Kill ends the server with SIGKILL and returns when its first process has ended. The
// others notice it and end, too.
func (k *Killable) Kill(tb testing.TB) {
	tb.Helper()
	if k.process == nil {
		return
	}
	_ = k.process.Kill() // fails if it has ended
	<-k.ended
}
