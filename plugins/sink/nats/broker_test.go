//go:build !e2e

package nats_test

import (
	"sync"
	"testing"

	"github.com/guidonhq/guidon/plugins/sink/nats/natstest"
)

// disks are what brokers have stored, by their directory.
var disks sync.Map

// broker starts a server with its files in dir, which in this file is the small one of
// natstest. With -tags e2e it is a real one.
func broker(t *testing.T, dir string, o brokerOptions) *natstest.Server {
	t.Helper()
	streams, _ := disks.LoadOrStore(dir, &natstest.Streams{})
	return natstest.Start(t, natstest.Options{
		Port: o.port, Token: o.token, MaxPayload: o.maxPayload, NoStreams: o.noStreams, Streams: streams.(*natstest.Streams),
	})
}
