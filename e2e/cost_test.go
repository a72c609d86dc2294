//go:build e2e

package e2e_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// costVariants are the servers that TestCost compares: log, nodes and partitions. The
// first one is what the others are divided by.
const costVariants = "local postgres-1x12 kafka-1x12"

// costLoads are the loads of each variant, in their order: no events; requests of 50 events
// and of one event, as many as are answered; 150 requests of one event a second; and 20
// requests of 50 events a second for each node.
const costLoads = "idle batches singles trickle steady"

// TestCost measures what an accepted event costs on servers with different logs, all on
// one Postgres and one broker, with a file sink on each node. A round starts each variant
// in turn with a database of its own, so that the variants share what else the machine
// does. The table at the end has the middle of all rounds, and the ratio to the first
// variant. make bench-cluster runs it.
//
//	COST_ROUNDS     rounds; without it the test does nothing
//	COST_VARIANTS   such as "local kafka-1x12 kafka-3x12"
//	COST_LOADS      some of costLoads
//	COST_EVENTS     events of a load at saturation (60000)
//	COST_PROFILES   a directory for CPU profiles
func TestCost(t *testing.T) {
	rounds := int(chaosSetting(t, "COST_ROUNDS"))
	if rounds == 0 {
		t.Skip("COST_ROUNDS is not set")
	}
	variants := strings.Fields(cmp.Or(os.Getenv("COST_VARIANTS"), costVariants))
	loads := strings.Fields(cmp.Or(os.Getenv("COST_LOADS"), costLoads))
	b := &costBench{T: t, events: int(cmp.Or(chaosSetting(t, "COST_EVENTS"), 60_000)), results: map[string][]float64{}}
	b.postgres = dbtest.StartKillable(t)
	if strings.Contains(strings.Join(variants, " "), "kafka") {
		b.broker, b.brokerAddress = startKafka(t)
	}
	for round := range rounds {
		for _, name := range variants {
			v := parseVariant(t, name)
			if !t.Run(fmt.Sprintf("%s/%d", name, round+1), func(t *testing.T) { b.run(t, v, loads) }) {
				return
			}
		}
	}
	t.Log("\n" + b.table(variants))
}

// costVariant is a kind of servers.
type costVariant struct {
	name, log         string
	nodes, partitions int
}

// parseVariant reads "local" or LOG-NODESxPARTITIONS.
func parseVariant(t *testing.T, name string) costVariant {
	t.Helper()
	v := costVariant{name: name, log: "local", nodes: 1}
	if name == v.log {
		return v
	}
	text := strings.NewReplacer("-", " ", "x", " ").Replace(name)
	if _, err := fmt.Sscan(text, &v.log, &v.nodes, &v.partitions); err != nil || (v.log != "kafka" && v.log != "postgres") {
		t.Fatalf("variant %q: want local, kafka-1x12 or postgres-1x12", name)
	}
	return v
}

// costBench compares variants.
type costBench struct {
	*testing.T
	events        int
	postgres      *dbtest.Killable
	broker        kafka
	brokerAddress string

	rows    []string             // names of measurements in the order of the table
	results map[string][]float64 // of all rounds, by variant and measurement
}

// add adds a result of a round.
func (b *costBench) add(t *testing.T, v costVariant, row string, value float64) {
	t.Logf("%s: %.4g", row, value)
	if !slices.Contains(b.rows, row) {
		b.rows = append(b.rows, row)
	}
	b.results[v.name+" "+row] = append(b.results[v.name+" "+row], value)
}

// table has a line for each measurement and a column for each variant.
func (b *costBench) table(variants []string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "| | %s |\n|%s\n", strings.Join(variants, " | "), strings.Repeat("---|", len(variants)+1))
	for _, row := range b.rows {
		fmt.Fprintf(&out, "| %s |", row)
		first := 0.0
		for i, name := range variants {
			all := slices.Sorted(slices.Values(b.results[name+" "+row]))
			if len(all) == 0 {
				out.WriteString(" |")
				continue
			}
			middle := all[len(all)/2]
			fmt.Fprintf(&out, " %.4g", middle)
			if len(all) > 1 {
				fmt.Fprintf(&out, " (%.4g to %.4g)", all[0], all[len(all)-1])
			}
			if i == 0 {
				first = middle
			} else if first > 0 {
				fmt.Fprintf(&out, ", %.2f ×", middle/first)
			}
			out.WriteString(" |")
		}
		out.WriteString("\n")
	}
	return out.String()
}

// run measures one variant once.
func (b *costBench) run(t *testing.T, v costVariant, loads []string) {
	c := b.startCluster(t, v)
	defer c.stop(t)
	c.send(t, costLoad{batch: 50, connections: 8, events: 10_000, everyone: true}) // makes the persons
	c.drain(t)
	for _, load := range loads {
		c.settle(t)
		saved := c.saveProfiles(t, load)
		logged := c.topicBytes(t)
		before, begin := c.usage(t), time.Now()
		var l costLoad
		switch load {
		case "batches":
			l = costLoad{batch: 50, connections: 16 * v.nodes, events: b.events}
		case "singles":
			l = costLoad{batch: 1, connections: 32 * v.nodes, events: b.events / 4}
		case "trickle":
			l = costLoad{batch: 1, connections: 16, events: 1500, rate: 150}
		case "steady": // each node has the same load
			l = costLoad{batch: 50, connections: 16 * v.nodes, events: 10_000 * v.nodes, rate: 20 * v.nodes}
		case "idle":
			time.Sleep(15 * time.Second)
			used, took := c.usage(t).minus(before), time.Since(begin)
			c.idle = used.guidon.Seconds() / took.Seconds()
			b.add(t, v, "idle: Guidon, ms CPU a second", c.idle*1000)
			b.add(t, v, "idle: broker, ms CPU a second", millis(used.broker)/took.Seconds())
			b.add(t, v, "idle: Postgres, ms CPU a second", millis(used.postgres)/took.Seconds())
			<-saved
			continue
		default:
			t.Fatalf("load %q", load)
		}
		latency := c.send(t, l)
		sent := time.Since(begin)
		c.drain(t)
		took, used := time.Since(begin), c.usage(t).minus(before)
		n := float64(l.events)
		b.add(t, v, load+": Guidon, µs CPU an event", micros(used.guidon)/n)
		if c.idle > 0 {
			b.add(t, v, load+": without what idle nodes use, µs", micros(used.guidon)/n-c.idle*micros(took)/n)
		}
		b.add(t, v, load+": broker, µs CPU an event", micros(used.broker)/n)
		b.add(t, v, load+": Postgres, µs CPU an event", micros(used.postgres)/n)
		b.add(t, v, load+": accept p50, ms", millis(latency[len(latency)/2]))
		b.add(t, v, load+": accept p99, ms", millis(latency[len(latency)*99/100]))
		if v.log == "kafka" {
			b.add(t, v, load+": bytes an event in the topic", float64(c.topicBytes(t)-logged)/n)
		}
		if l.rate == 0 {
			b.add(t, v, load+": accepted a second", n/sent.Seconds())
			b.add(t, v, load+": processed a second", n/took.Seconds())
			b.add(t, v, load+": largest resident memory of a node, MB", float64(c.memory())/1e6)
		}
		<-saved
	}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
