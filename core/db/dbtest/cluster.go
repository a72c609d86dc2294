package dbtest

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// startTimeout is generous: test machines are busy.
const startTimeout = time.Minute

// guard starts the server, waits until the test process that holds the other
// end of its standard input is gone, however it went, then stops the server
// and removes its folder.
const guard = `"$@" >log 2>&1 & server=$!
cat >/dev/null
kill -QUIT $server
wait $server
cd / && rm -rf "$0"`

// startCluster starts a server that listens on a socket in a folder of its own
// and ends with this process.
func startCluster() (*server, error) {
	bin, err := binDir()
	if err != nil {
		return nil, err
	}
	who, err := unprivileged()
	if err != nil {
		return nil, err
	}
	sweep()
	dir, err := ownDir(who, "guidon-pg-")
	if err != nil {
		return nil, err
	}
	lifeline, err := launch(who, bin, dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return newPrivateServer(lifeline, url.URL{
		Scheme:   "postgres",
		Path:     "/postgres",
		RawQuery: url.Values{"host": {dir}, "user": {"postgres"}, "sslmode": {"disable"}}.Encode(),
	}), nil
}

// launch returns the end of the pipe that keeps the server alive.
func launch(who account, bin, dir string) (*os.File, error) {
	fresh, err := initialised(who, bin)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if out, err := who.command(dir, "cp", "-a", fresh, data).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("copy the initial cluster: %w: %s", err, out)
	}
	args := []string{"-c", guard, dir, filepath.Join(bin, "postgres"), "-D", data}
	for _, setting := range []string{
		"listen_addresses=", "unix_socket_directories=" + dir, "max_connections=200",
		"fsync=off", "synchronous_commit=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0",
		"shared_buffers=32MB", "autovacuum=off", "jit=off", "log_line_prefix=%m [%p] %u@%d ",
	} {
		args = append(args, "-c", setting)
	}
	end, lifeline, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := who.command(dir, "sh", args...)
	cmd.Stdin = end
	cmd.SysProcAttr.Setsid = true // an interrupt from the terminal is for the test
	err = cmd.Start()
	_ = end.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start postgres: %w", err), lifeline.Close())
	}
	if err := ready(dir); err != nil {
		_ = lifeline.Close()
		_ = cmd.Wait()
		return nil, err
	}
	return lifeline, nil
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
		if bytes.Contains(log, []byte("FATAL")) || time.Now().After(deadline) {
			return fmt.Errorf("postgres does not start: %s", bytes.TrimSpace(log))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// initialised returns the folder of a cluster that was initialised and never
// started, made once for each version and account and kept for the next run.
func initialised(who account, bin string) (string, error) {
	version, err := who.command("/", filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask postgres for its version: %w", err)
	}
	fields := strings.Fields(string(version)) // postgres (PostgreSQL) 15.18 (…)
	if len(fields) < 3 {
		return "", fmt.Errorf("postgres has an odd version: %q", version)
	}
	kept := filepath.Join(os.TempDir(), fmt.Sprintf("guidon-initdb-%s-%d", fields[2], who.uid))
	if owns(who, kept) {
		return kept, nil
	}
	dir, err := ownDir(who, "guidon-initdb-new-")
	if err != nil {
		return "", err
	}
	out, err := who.command(dir, filepath.Join(bin, "initdb"), "--pgdata="+filepath.Join(dir, "data"),
		"--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("initialise a cluster: %w: %s", err, out)
	}
	// When another process was faster, its folder is as good as ours.
	if err := os.Rename(filepath.Join(dir, "data"), kept); err != nil && !owns(who, kept) {
		return "", fmt.Errorf("keep the initialised cluster: %w", err)
	}
	return kept, os.RemoveAll(dir)
}

// owns reports whether path is a folder that only the account can have made.
func owns(who account, path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == who.uid
}

// ownDir makes a folder that belongs to the account alone.
func ownDir(who account, prefix string) (string, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", err
	}
	return dir, os.Chown(dir, who.uid, who.gid)
}

// sweep removes what clusters left that ended with the machine.
func sweep() {
	old := time.Now().Add(-24 * time.Hour)
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), "guidon-pg-*")) // fails on a bad pattern only
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err == nil && info.IsDir() && info.ModTime().Before(old) && !alive(dir) {
			_ = os.RemoveAll(dir) // fails if it is another user's or already removed
		}
	}
}

// alive reports whether the server of a cluster's folder still runs.
func alive(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		return false
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		return false
	}
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
