package doctor

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"golang.org/x/sys/unix"

	"github.com/guidonhq/guidon/app"
)

// checkClock asks the kernel whether a time service keeps the clock.
func checkClock(context.Context, app.Config) []Result {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return []Result{warn("check that a time service such as chrony or systemd-timesyncd runs", "the state of the clock cannot be read: %v", err)}
	}
	bound := rounded(time.Duration(t.Maxerror) * time.Microsecond)
	if state == unix.TIME_ERROR {
		return []Result{warn("run a time service such as chrony or systemd-timesyncd: times of events are corrected with this clock, and keys expire by it", "no time service keeps the clock; it is %s", time.Now().UTC().Format(time.RFC3339))}
	}
	return []Result{ok("kept by a time service, at most %s off", bound)}
}

// checkSpace compares the free space with the guard of the journal.
func checkSpace(_ context.Context, cfg app.Config) (out []Result) {
	for _, dir := range directories(cfg) {
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err != nil {
			out = append(out, fail("make the directory readable by the user of the server", "%s: %v", dir, err))
			continue
		}
		out = append(out, space(cfg, dir, int64(fs.Bavail)*fs.Bsize, int64(fs.Blocks)*fs.Bsize, fs.Files == 0 || fs.Ffree >= 1000))
	}
	return out
}

// space judges the free bytes of a disk of size bytes.
func space(cfg app.Config, dir string, free, size int64, inodes bool) Result {
	guard := cfg.Journal.MinFree(size)
	found := fmt.Sprintf("%s: %s of %s free", dir, bytesText(free), bytesText(size))
	refuses := "the server refuses events below " + bytesText(guard) + " (journal.min_free_bytes, journal.min_free_percent)"
	switch {
	case free < guard:
		return fail("free space: "+refuses, "%s", found)
	case free < 2*guard:
		return warn(refuses, "%s", found)
	case !inodes:
		return warn("remove files: the file system has almost no inodes left", "%s", found)
	}
	return ok("%s", found)
}

// wantedMemory is the memory below which the check warns.
const wantedMemory = 256 << 20

// checkMemory compares the limit of the control group, or the memory of the machine.
func checkMemory(context.Context, app.Config) []Result {
	limit, err := memlimit.FromCgroup()
	found := "limit of the control group"
	if err != nil || limit == 0 || limit > 1<<50 {
		var info unix.Sysinfo_t
		if err := unix.Sysinfo(&info); err != nil {
			return []Result{warn("", "the memory cannot be read: %v", err)}
		}
		limit, found = info.Totalram*uint64(info.Unit), "memory of the machine, no limit of a control group"
	}
	text := fmt.Sprintf("%s: %s; processors: %d", found, bytesText(limit), runtime.NumCPU())
	if limit < wantedMemory {
		return []Result{warn("a server with plugins needs "+bytesText(int64(wantedMemory))+" or more", "%s", text)}
	}
	return []Result{ok("%s", text)}
}
