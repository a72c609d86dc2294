package dbtest

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/guidonhq/guidon/migrations"
)

// startTimeout is generous: test machines are busy.
const startTimeout = time.Minute

// sharedInFolder makes a server keep shared memory in files of its folder, which go with it.
// Otherwise a killed server leaves them in /dev/shm.
const sharedInFolder = "dynamic_shared_memory_type=mmap"

// guard starts the server, waits until the test process that holds the other
// end of its standard input is gone, however it went, then stops the server
// and removes its folder. It holds the lock of the folder, descriptor 3.
const guard = `"$@" >log 2>&1 3>&- & server=$!
cat >/dev/null
kill -QUIT $server
wait $server
cd / && rm -rf "$0"`

// stopAndKeep is guard for a cluster that stays: the server writes its files and stops.
const stopAndKeep = `"$@" >log 2>&1 & server=$!
cat >/dev/null
kill -INT $server
wait $server`

// cluster is a server of the installed binaries. It listens on a socket in its folder.
type cluster struct {
	dir      string
	lifeline *os.File // the server stops when this is closed, or collected
	guard    *exec.Cmd
}

// startCluster starts a server with a migrated template that ends with this process.
func startCluster() (*cluster, error) {
	bin, err := binDir()
	if err != nil {
		return nil, err
	}
	who, err := unprivileged()
	if err != nil {
		return nil, err
	}
	version, err := versionOf(who, bin)
	if err != nil {
		return nil, err
	}
	schema, err := schemaHash(migrations.Postgres)
	if err != nil {
		return nil, err
	}

	sweep()
	home, err := newFolder(who, fastDir())
	if err != nil {
		return nil, err
	}
	err = migratedCluster(who, bin, version, schema).copyTo(who, filepath.Join(home.path, "data"))
	if err != nil {
		home.remove()
		return nil, err
	}
	c, err := launch(who, bin, home.path, guard, home.lock)
	if err != nil {
		home.remove()
		return nil, err
	}
	return c, home.lock.Close()
}

// launch starts a server on the folder data in dir, under a script as guard is. The script
// inherits the lock, if there is one.
func launch(who account, bin, dir, script string, lock *os.File) (*cluster, error) {
	args := []string{"-c", script, dir, filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data")}
	for _, setting := range []string{
		"listen_addresses=", "unix_socket_directories=" + dir,
		"fsync=off", "synchronous_commit=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0",
		"shared_buffers=32MB", sharedInFolder, "autovacuum=off", "jit=off", "log_line_prefix=%m [%p] %u@%d ",

		// Many servers run in one test process, each with its pools. The table of locks is
		// shared by all connections, so that a few for each suffice.
		"max_connections=1000", "max_locks_per_transaction=16", "max_pred_locks_per_transaction=16",
	} {
		args = append(args, "-c", setting)
	}

	end, lifeline, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := who.command(dir, "sh", args...)
	cmd.Stdin = end
	if lock != nil {
		cmd.ExtraFiles = []*os.File{lock}
	}
	cmd.SysProcAttr.Setsid = true // an interrupt from the terminal is for the test
	err = cmd.Start()
	_ = end.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start postgres: %w", err), lifeline.Close())
	}

	c := &cluster{dir, lifeline, cmd}
	if err := ready(dir); err != nil {
		_ = c.stop()
		return nil, err
	}
	return c, nil
}

// url is that of the maintenance database.
func (c *cluster) url() url.URL { return socketURL(c.dir) }

// socketURL is the URL of the database postgres of a server that listens in dir.
func socketURL(dir string) url.URL {
	return url.URL{
		Scheme:   "postgres",
		Path:     "/postgres",
		RawQuery: url.Values{"host": {dir}, "user": {"postgres"}, "sslmode": {"disable"}}.Encode(),
	}
}

// stop returns when the server has ended.
func (c *cluster) stop() error {
	_ = c.lifeline.Close()
	if err := c.guard.Wait(); err != nil {
		log, _ := os.ReadFile(filepath.Join(c.dir, "log")) // says more, if it is there
		return fmt.Errorf("stop postgres: %w: %s", err, bytes.TrimSpace(log))
	}
	return nil
}

// ready waits until the pid file reports a ready server or the log an error.
func ready(dir string) error {
	deadline := time.Now().Add(startTimeout)
	for {
		if status, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid")); err == nil {
			if lines := strings.Split(string(status), "\n"); len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready" {
				return nil
			}
		}
		log, _ := os.ReadFile(filepath.Join(dir, "log")) // not there yet
		if bytes.Contains(log, []byte("FATAL")) || bytes.Contains(log, []byte("postgres: could not")) || time.Now().After(deadline) {
			return fmt.Errorf("postgres does not start: %s", bytes.TrimSpace(log))
		}
		time.Sleep(5 * time.Millisecond)
	}
}
