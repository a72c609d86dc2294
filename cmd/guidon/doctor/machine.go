package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/guidonhq/guidon/app"
)

// directories returns the existing directories that the server writes to.
func directories(cfg app.Config) (dirs []string) {
	journal, err := cfg.Journal.Directory(cfg.DataDir)
	if err != nil {
		journal = ""
	}
	for _, dir := range []string{cfg.DataDir, journal} {
		for dir != "" && !exists(dir) { // a first start makes it
			if parent := filepath.Dir(dir); parent != dir {
				dir = parent
			} else {
				break
			}
		}
		if abs, err := filepath.Abs(dir); err == nil && dir != "" && !slices.Contains(dirs, abs) {
			dirs = append(dirs, abs)
		}
	}
	return dirs
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The writes of the measurement of fsync, and the median from which it warns.
const (
	fsyncs    = 30
	slowFsync = 10 * time.Millisecond
)

// checkFsync measures fsync of appended blocks in each directory.
func checkFsync(_ context.Context, cfg app.Config) (out []Result) {
	for _, dir := range directories(cfg) {
		took, err := measureFsync(dir)
		if err != nil {
			out = append(out, fail("the user of the server must be able to write here", "%s: %v", dir, err))
			continue
		}
		median, worst := took[len(took)/2], took[len(took)-1]
		r := ok("%s: median %s, slowest of %d %s", dir, rounded(median), fsyncs, rounded(worst))
		if median > slowFsync {
			r.State, r.Advice = Warn, "an answer to a captured event waits for one fsync: put the data directory on an SSD, or the journal (journal.dir) on a faster disk"
		}
		out = append(out, r)
	}
	return out
}

// measureFsync returns the sorted times of writes with fsync in a temporary file.
func measureFsync(dir string) (took []time.Duration, err error) {
	f, err := os.CreateTemp(dir, ".guidon-doctor-*")
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = f.Close()
		if removed := os.Remove(f.Name()); err == nil {
			err = removed
		}
	}()
	block := []byte(strings.Repeat("guidon", 683)) // about 4 KiB
	for range fsyncs {
		begin := time.Now()
		if _, err = f.Write(block); err == nil {
			err = f.Sync()
		}
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took, nil
}

// wantedFiles is the number of open files below which the check warns.
const wantedFiles = 4096

func checkFiles(context.Context, app.Config) []Result {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return []Result{warn("", "the limit cannot be read: %v", err)}
	}
	// The Go runtime raises the soft limit to the hard one at the start.
	if limit.Max < wantedFiles {
		return []Result{warn(fmt.Sprintf("each connection needs one: raise the limit to %d or more (LimitNOFILE= of the unit, ulimit -n)", wantedFiles), "at most %d", limit.Max)}
	}
	return []Result{ok("at most %d", limit.Max)}
}
