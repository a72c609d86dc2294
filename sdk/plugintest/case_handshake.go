package plugintest

import (
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// handshake is how a plugin comes up.
var handshake = group{"handshake", []oneCase{
	{"started by hand, it says what it is and ends", func(c *check) {
		code, stdout, stderr, err := byHand(c.ctx, &c.target)
		c.no(err, "start it without the cookie")
		switch {
		case code == 0:
			c.fail("it ended with 0 although it was not started by a host")
		case strings.TrimSpace(stdout) != "":
			c.fail("it wrote to standard output, which is kept for the handshake: %q", clip(stdout))
		case strings.TrimSpace(stderr) == "":
			c.fail("it said nothing on standard error")
		}
	}},
	{"shakes hands", func(c *check) {
		p := c.process()
		ctx, cancel := c.call(15 * time.Second)
		defer cancel()
		var err error
		c.info, err = p.plugin().Info(ctx, &pluginv1.InfoRequest{HostName: "plugintest", ProtocolMinor: sdk.ProtocolMinor}, grpc.WaitForReady(true))
		c.no(err, "Info")
	}},
	{"speaks mutual TLS", tlsCase},
	{"ends when it is told to", func(c *check) {
		p := c.another()
		ctx, cancel := c.call(15 * time.Second)
		defer cancel()
		_ = p.shutdown(ctx) // it may be gone before it answers
		if !p.ends(10 * time.Second) {
			c.fail("it runs ten seconds after Shutdown")
		}
	}},
	{"ends on SIGTERM", func(c *check) {
		p := c.another()
		c.no(p.cmd.Process.Signal(syscall.SIGTERM), "signal")
		if !p.ends(20 * time.Second) {
			c.fail("it runs twenty seconds after SIGTERM")
		}
	}},
	{"ends when the host is gone", func(c *check) {
		p := c.another()
		c.no(p.stdin.Close(), "close its standard input")
		if !p.ends(10 * time.Second) {
			c.fail("it runs ten seconds after its standard input was closed, which %s=stdin says is the end of the host", sdk.WatchKey)
		}
	}},
}}

// farewell checks what shows only at the end.
var farewell = group{"process", []oneCase{
	{"has written nothing to standard output", func(c *check) {
		if c.info == nil {
			c.skip("it never came up")
		}
		if text := c.noise + c.process().printed(); text != "" {
			c.fail("standard output is kept for the handshake, and it wrote %q", clip(text))
		}
	}},
}}
