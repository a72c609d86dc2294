package plugintest

import (
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/observe"
)

// handshake is how a plugin comes up.
var handshake = group{"handshake", []oneCase{
	{"started by hand, it says what it is and ends", func(c *check) {
		code, stdout, stderr, err := c.command().ByHand(c.ctx)
		c.no(err, "start it without the cookie")
		switch {
		case code == 0:
			c.fail("it ended with 0 although it was not started by a host")
		case strings.TrimSpace(stdout) != "":
			c.fail("it wrote to standard output, which is kept for the handshake: %q", observe.Clip(stdout))
		case strings.TrimSpace(stderr) == "":
			c.fail("it said nothing on standard error")
		}
	}},
	{"shakes hands", func(c *check) {
		p := c.process()
		ctx, cancel := c.call(15 * time.Second)
		defer cancel()
		var err error
		c.info, err = p.Plugin().Info(ctx, &pluginv1.InfoRequest{HostName: "plugintest", ProtocolMinor: sdk.ProtocolMinor}, grpc.WaitForReady(true))
		c.no(err, "Info")
	}},
	{"serves the health of gRPC", healthCase},
	{"speaks mutual TLS", tlsCase},
	{"ends when it is told to", func(c *check) {
		c.terminate()
		p := c.another()
		ctx, cancel := c.call(15 * time.Second)
		defer cancel()
		_ = p.Shutdown(ctx) // it may be gone before it answers
		if !p.Ends(10 * time.Second) {
			c.fail("it runs ten seconds after Shutdown")
		}
	}},
	{"ends when the host is gone", func(c *check) {
		p := c.another()
		c.no(p.CloseStdin(), "close its standard input")
		if !p.Ends(10 * time.Second) {
			c.fail("it runs ten seconds after its standard input was closed, which %s=stdin says is the end of the host", sdk.WatchKey)
		}
	}},
}}
