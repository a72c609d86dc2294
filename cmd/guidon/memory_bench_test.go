package main_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkSmallServer loads a server with 200 single events and 50 decisions a second
// and reports the memory of the server and of the process of its file sink: the largest
// resident memory in each half of the time, and at the end its parts. "anon" is the
// memory of the process alone, "file" are pages of the executable, which processes
// share, and "pss" counts a shared page for each process as its part of it.
//
//	SMALL_SERVER=10m go test ./cmd/guidon -run '^$' -bench SmallServer -benchtime 1x -timeout 90m
func BenchmarkSmallServer(b *testing.B) {
	span, err := time.ParseDuration(cmp.Or(os.Getenv("SMALL_SERVER"), "20s"))
	if err != nil {
		b.Fatal(err)
	}
	for range b.N {
		s := newServer(b)
		s.start(b)
		pids := map[string]int{"server": s.cmd.Process.Pid, "plugin": pluginProcess(b, s.cmd.Process.Pid)}
		wait := loadSmallServer(b, s, span)
		early, late := map[string]float64{}, map[string]float64{}
		for begin := time.Now(); time.Since(begin) < span; time.Sleep(time.Second) {
			half := early
			if time.Since(begin) > span/2 {
				half = late
			}
			for name, pid := range pids {
				half[name] = max(half[name], resident(b, pid))
			}
		}
		for name, pid := range pids {
			b.ReportMetric(early[name], name+"-MB-first-half")
			b.ReportMetric(late[name], name+"-MB-second-half")
			for part, field := range map[string]string{"anon": "RssAnon:", "file": "RssFile:"} {
				b.ReportMetric(processMemory(b, pid, "status", field), name+"-MB-"+part)
			}
			b.ReportMetric(processMemory(b, pid, "smaps_rollup", "Pss:"), name+"-MB-pss")
		}
		wait()
		if err := s.stop(b); err != nil {
			b.Fatal(err)
		}
	}
}

// loadSmallServer starts the load and returns what waits for its end.
func loadSmallServer(b *testing.B, s *server, span time.Duration) (wait func()) {
	b.Helper()
	var running []*exec.Cmd
	for path, rate := range map[string]int{"capture": 200, "decide": 50} {
		cmd := exec.Command(bin, "bench", path, "--key", s.project, "--url", s.url, "--rate", strconv.Itoa(rate), "--duration", span.String(), "--errors", "0")
		out := new(strings.Builder)
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { b.Log(out) })
		running = append(running, cmd)
	}
	return func() {
		for _, cmd := range running {
			if err := cmd.Wait(); err != nil {
				b.Error(err)
			}
		}
	}
}

// pluginProcess returns the process of the only plugin of a server.
func pluginProcess(b *testing.B, server int) (pid int) {
	b.Helper()
	until(b, func() string {
		var children []string
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", server))
		for _, file := range files {
			raw, _ := os.ReadFile(file)
			children = append(children, strings.Fields(string(raw))...)
		}
		if len(children) != 1 {
			return fmt.Sprintf("%d plugin processes", len(children))
		}
		pid, _ = strconv.Atoi(children[0])
		return ""
	})
	return pid
}

// resident returns the resident memory of a process in MB.
func resident(b *testing.B, pid int) float64 { return processMemory(b, pid, "status", "VmRSS:") }

// processMemory returns a field of a file of /proc/PID in MB.
func processMemory(b *testing.B, pid int, file, field string) float64 {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, found := strings.Cut(string(raw), "\n"+field)
	if !found {
		b.Fatal(errors.New(file + " has no " + field))
	}
	kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kb / 1024
}
