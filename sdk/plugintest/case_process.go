package plugintest

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/candidate"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/observe"
)

// farewell checks what shows only at the end.
var farewell = group{"process", []oneCase{
	{"keeps its memory while instances come and go", memoryCase},
	{"logs no more than the server keeps", func(c *check) {
		for _, p := range c.started {
			lines, size, longest := p.Logged()
			switch {
			case lines > observe.KeptLines:
				c.fail("it logs %d lines in a second at the level warn; the server keeps %d", lines, observe.KeptLines)
			case size > observe.KeptBytes:
				c.fail("it logs %d bytes in a second at the level warn", size)
			case longest > observe.KeptLine:
				c.fail("it logs a line of %d bytes; the server cuts a line at %d", longest, observe.KeptLine)
			}
		}
	}},
	{"has written nothing to standard output", func(c *check) {
		for _, p := range c.started {
			if text := p.Stdout(); text != "" {
				c.fail("standard output is for the handshake alone, and it wrote %q", observe.Clip(text))
			}
		}
	}},
	{"ends on SIGTERM", func(c *check) {
		c.terminate()
		if !c.terminated.Ends(time.Until(c.terminatedAt.Add(20 * time.Second))) {
			c.fail("it runs twenty seconds after SIGTERM")
		}
	}},
	{"leaves no process behind", survivorsCase},
}}

// terminate sends SIGTERM to a process, once. Plugins may use the time to wait for their
// host, so the case that looks at it comes at the end.
func (c *check) terminate() {
	if c.terminated != nil {
		return
	}
	p := c.another()
	c.own = slices.DeleteFunc(c.own, func(o *candidate.Process) bool { return o == p })
	c.no(p.Signal(syscall.SIGTERM), "signal")
	c.terminated, c.terminatedAt = p, time.Now()
}

// healthCase calls the health service of gRPC, by which go-plugin knows a plugin.
func healthCase(c *check) {
	p := c.process()
	ctx, cancel := c.call(15 * time.Second)
	defer cancel()
	out, err := grpc_health_v1.NewHealthClient(p.Conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "plugin"}, grpc.WaitForReady(true))
	c.no(err, `grpc.health.v1.Health/Check of the service "plugin"`)
	if out.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		c.fail(`the health of the service "plugin" is %s`, out.GetStatus())
	}
}

// metricsCase calls Metrics as the server does when its own metrics are read.
func metricsCase(c *check) {
	if !slices.Contains(c.info.GetFeatures(), "plugin/metrics/v1") {
		c.skip("it has no metrics")
	}
	c.accepted(instanceID, c.target.Config)
	ctx, cancel := c.call(5 * time.Second)
	defer cancel()
	out, err := c.process().Plugin().Metrics(ctx, &pluginv1.MetricsRequest{})
	c.no(err, "Metrics")
	for _, in := range out.GetInstances() {
		if lines := bytes.Count(in.GetOpenmetrics(), []byte("\n")); lines > 10_000 {
			c.fail("its metrics have %d lines", lines)
		}
	}
}

const (
	// Each part ends at its time or its number of cycles: a fast plugin must leave
	// cycles to the part that counts.
	warmUp, warmUpCycles = time.Second, 200
	cycles, lastCycle    = 2 * time.Second, 1000
	// Growth up to these is that of any runtime.
	freeBytes, freeFiles = 48 << 20, 50
)

// memoryCase configures, opens and closes instances, and compares memory and open files
// after the first ones with those at the end.
func memoryCase(c *check) {
	if runtime.GOOS != "linux" {
		c.skip("memory is measured on Linux only")
	}
	if !c.info.GetMultiInstance() {
		c.skip("it says that a process serves one instance only")
	}
	p := c.process()
	n := c.cycle(p, 0, warmUpCycles, warmUp)
	before, files := observe.Memory(p.PID()), observe.OpenFiles(p.PID())
	n = c.cycle(p, n, lastCycle, cycles)
	after, filesAfter := observe.Memory(p.PID()), observe.OpenFiles(p.PID())
	if grown := after - before; grown > max(freeBytes, before/2) {
		c.fail("its memory grows from %d to %d MiB while %d instances come and go", before>>20, after>>20, n)
	}
	if filesAfter-files > freeFiles {
		c.fail("it has %d open files after %d instances, and had %d", filesAfter, n, files)
	}
}

// cycle makes and releases the instances from number n to most, for at most d, and
// returns the number of the next one. Not every destination can be opened twice, so
// Open may fail.
func (c *check) cycle(p *candidate.Process, n, most int, d time.Duration) int {
	config := c.target.Other
	if config == nil {
		config = c.target.Config
	}
	for end := time.Now().Add(d); n < most && time.Now().Before(end); n++ {
		id := "cycle-" + strconv.Itoa(n)
		if out := c.configureIn(p, id, 1, config); !out.GetAccepted() {
			c.fail("Configure refuses the config of instance %d: %s %s", n+1, diagnostics(out.GetDiagnostics()), failed(out.GetError()))
		}
		c.tryOpen(p, id)
		c.closeInstance(id)
	}
	return n
}

func (c *check) tryOpen(p *candidate.Process, id string) {
	ctx, cancel := c.call(15 * time.Second)
	defer cancel()
	switch c.kind {
	case pluginv1.Kind_KIND_SINK:
		_, _ = p.Sink().Open(ctx, &sinkv1.OpenRequest{InstanceId: id})
	case pluginv1.Kind_KIND_NOTIFIER:
		_, _ = p.Notifier().Open(ctx, &notifyv1.OpenRequest{InstanceId: id})
	case pluginv1.Kind_KIND_MATCHER:
		_, _ = p.Matcher().Open(ctx, &matchv1.OpenRequest{InstanceId: id})
	case pluginv1.Kind_KIND_UNSPECIFIED: // nothing can be opened
	}
}

// survivorsCase looks for processes that a plugin started and that outlive it. They are
// known by a variable of the environment that they inherit.
func survivorsCase(c *check) {
	if runtime.GOOS != "linux" {
		c.skip("processes are listed on Linux only")
	}
	c.retire()
	if c.terminated != nil {
		c.terminated.Kill()
	}
	var left []int
	for end := time.Now().Add(3 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if left = c.command().Left(); len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			break
		}
	}
	var names []string
	for _, pid := range left {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		names = append(names, strconv.Quote(observe.Clip(strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ")))))
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	c.fail("%d processes that it started outlive it: %s", len(left), strings.Join(names[:min(len(names), 5)], ", "))
}
