//go:build e2e

package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// takeoverProbe is the number of events that are sent when a node ends. Their persons are
// in all partitions.
const takeoverProbe = 200

// TestTakeoverTime measures how long the partitions of a node that was killed, or stopped
// with SIGTERM, are without an owner, and when events that are accepted meanwhile are
// stored. make bench-takeover runs it, with TAKEOVER_ROUNDS and COST_VARIANTS.
func TestTakeoverTime(t *testing.T) {
	rounds := int(chaosSetting(t, "TAKEOVER_ROUNDS"))
	if rounds == 0 {
		t.Skip("TAKEOVER_ROUNDS is not set")
	}
	variants := strings.Fields(cmp.Or(os.Getenv("COST_VARIANTS"), "kafka-3x12 postgres-3x12"))
	b := &costBench{T: t, results: map[string][]float64{}}
	b.postgres = dbtest.StartKillable(t)
	if strings.Contains(strings.Join(variants, " "), "kafka") {
		b.broker, b.brokerAddress = startKafka(t)
	}
	for _, name := range variants {
		v := parseVariant(t, name)
		if v.nodes < 2 {
			t.Fatalf("%s: a takeover needs two nodes", name)
		}
		t.Run(name, func(t *testing.T) {
			c := b.startCluster(t, v)
			defer c.stop(t)
			for round := range rounds {
				victim := c.nodes[1+round%(v.nodes-1)]
				c.takeOver(t, "SIGKILL", func() { victim.kill(t) })
				c.restart(t, victim)
				ended := make(chan struct{})
				c.takeOver(t, "SIGTERM", func() {
					go func() { defer close(ended); victim.terminate(t) }()
				})
				<-ended
				c.restart(t, victim)
			}
		})
	}
	t.Log("\n" + b.table(variants))
}

func (c *costCluster) restart(t *testing.T, n *node) {
	t.Helper()
	n.start(t)
	eventually(t, time.Minute, "the partitions are divided", c.divided)
}

// takeOver ends a node and measures until the others have all partitions and have stored
// what the first one accepted since.
func (c *costCluster) takeOver(t *testing.T, signal string, end func()) {
	t.Helper()
	stored, begin := c.stored(t), time.Now()
	end()
	probing := make(chan struct{})
	go func() {
		defer close(probing)
		first := *c
		first.nodes = c.nodes[:1]
		first.send(t, costLoad{batch: takeoverProbe, connections: 1, events: takeoverProbe})
	}()
	eventually(t, time.Minute, "the others have the partitions", func() error {
		owned, err := c.nodes[0].partitions(c.nodes[0].personal)
		total := 0
		for _, n := range owned {
			total += n
		}
		if err != nil || len(owned) != c.variant.nodes-1 || total != c.variant.partitions {
			return fmt.Errorf("owned: %v: %w", owned, cmp.Or(err, errors.New("not yet")))
		}
		return nil
	})
	c.add(t, c.variant, "owned by others after "+signal+", s", time.Since(begin).Seconds())
	<-probing
	eventually(t, time.Minute, "the events are stored", func() error {
		if n := c.stored(t); n < stored+takeoverProbe {
			return fmt.Errorf("%d of %d events", n-stored, takeoverProbe)
		}
		return nil
	})
	c.add(t, c.variant, "events stored after "+signal+", s", time.Since(begin).Seconds())
}

// stored counts the events in the event store.
func (c *costCluster) stored(t *testing.T) (n int) {
	t.Helper()
	u, err := url.Parse(c.postgres.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + c.database
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM events").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
