package dbtest

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Killable is a PostgreSQL server that one test kills and starts again. It has the
// settings of a new installation, so it syncs commits to disk.
type Killable struct {
	URL string // of the database postgres

	bin     string
	account account
	folder  folder
	process *os.Process
	ended   chan struct{} // closed when process has ended
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
		k.quit()
		if tb.Failed() {
			log, _ := os.ReadFile(k.log())
			tb.Logf("log of Postgres:\n%s", log[max(0, len(log)-4000):])
		}
		k.folder.remove()
	})
	k.Start(tb)
	return k
}

// prepare makes a folder with a new cluster, on disk: in memory the server could not sync.
func (k *Killable) prepare() (err error) {
	if k.bin, err = binDir(); err != nil {
		return err
	}
	if k.account, err = unprivileged(); err != nil {
		return err
	}
	version, err := versionOf(k.account, k.bin)
	if err != nil {
		return err
	}
	sweep()
	if k.folder, err = newFolder(k.account, os.TempDir()); err != nil {
		return err
	}
	u := socketURL(k.folder.path)
	k.URL = u.String()
	return initialised(k.account, k.bin, version).copyTo(k.account, k.data())
}

func (k *Killable) data() string { return filepath.Join(k.folder.path, "data") }
func (k *Killable) log() string  { return filepath.Join(k.folder.path, "log") }

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
	log, err := os.OpenFile(k.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd := k.account.command(k.folder.path, filepath.Join(k.bin, "postgres"), "-D", k.data(),
		"-c", "listen_addresses=", "-c", "unix_socket_directories="+k.folder.path, "-c", "shared_buffers=32MB",
		"-c", sharedInFolder)
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

// quit ends the server, stopped or not, so that it removes its shared memory.
func (k *Killable) quit() {
	if k.process == nil {
		return
	}
	_ = k.process.Signal(syscall.SIGQUIT) // fails if it has ended
	_ = k.process.Signal(syscall.SIGCONT)
	select {
	case <-k.ended:
	case <-time.After(startTimeout):
		_ = k.process.Kill()
		<-k.ended
	}
}
