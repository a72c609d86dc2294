package main_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// The kernel ends the plugin processes with the server, within milliseconds; the
// limit allows for a slow machine.
func TestPluginsEndWithKilledServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	write(t, s.config(), `plugins:
  instances:
    - {name: lines, kind: sink, use: file, config: {path: `+s.lines+`}}
    - {name: console, kind: sink, use: stdout}
    - {name: alone, kind: sink, use: stdout, isolated: true}
`)
	s.start(t)
	var pids []int
	until(t, func() string {
		var page struct {
			Results []struct {
				Name, State string
				PID         int
			}
		}
		s.get(t, "/api/plugins", &page)
		pids = nil
		for _, p := range page.Results {
			if p.State != "ready" {
				return p.Name + " is " + p.State
			}
			pids = append(pids, p.PID)
		}
		return ""
	})
	s.kill()
	until(t, func() string {
		for _, pid := range pids {
			if exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); err == nil && strings.TrimSuffix(exe, " (deleted)") == bin {
				return strconv.Itoa(pid) + " is alive"
			}
		}
		return ""
	})
}
