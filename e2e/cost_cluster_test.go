//go:build e2e

package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// costCluster is the servers of one variant.
type costCluster struct {
	*costBench
	variant  costVariant
	database string
	nodes    []*node
	accepted int     // events since the start
	idle     float64 // processors that the nodes use without events; 0: not measured
}

// startCluster starts the nodes of a variant on a new database. It returns when each owns
// its part of the partitions.
func (b *costBench) startCluster(t *testing.T, v costVariant) *costCluster {
	t.Helper()
	c := &costCluster{costBench: b, variant: v, database: fmt.Sprint("cost", time.Now().UnixNano())}
	b.execute(t, "CREATE DATABASE "+c.database)
	for i := range v.nodes {
		n := c.newNode(t, fmt.Sprint("node", i+1))
		c.nodes = append(c.nodes, n)
		launch(t, n.software)
		if i == 0 {
			eventually(t, time.Minute, "the first run has printed its keys", func() error {
				output, err := os.ReadFile(n.log())
				n.readKeys(output)
				if n.project == "" || n.personal == "" {
					return errors.Join(err, fmt.Errorf("output: %s", output))
				}
				return nil
			})
		}
		n.project, n.personal = c.nodes[0].project, c.nodes[0].personal
	}
	if v.log != "local" {
		eventually(t, time.Minute, "the partitions are divided", c.divided)
	}
	return c
}

// newNode returns a node with a file sink.
func (c *costCluster) newNode(t *testing.T, name string) *node {
	t.Helper()
	u, err := url.Parse(c.postgres.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + c.database
	n := newNode(t, name, u.String(), "")
	config := writeFile(t, n.dir, "guidon.yaml", "plugins:\n  instances:\n%s", instanceYAML("lines", "sink", "file", "path: "+filepath.Join(n.dir, "events.ndjson")+"\n"))
	settings := []string{"GUIDON_CONFIG=" + config, "GUIDON_HTTP_ACCESS_LOG=broken"}
	switch c.variant.log {
	case "local":
		settings = append(settings, "GUIDON_CLUSTER_ENABLED=false")
	case "kafka":
		settings = append(settings, "GUIDON_JOURNAL_URL=kafka://"+c.brokerAddress+"/"+c.database)
	case "postgres":
		settings = append(settings, "GUIDON_JOURNAL_URL=postgres")
	}
	if c.variant.partitions > 0 {
		settings = append(settings, fmt.Sprint("GUIDON_JOURNAL_PARTITIONS=", c.variant.partitions))
	}
	last := len(n.command) - 2 // binary, serve
	n.command = append(append(append([]string{}, n.command[:last]...), settings...), n.command[last:]...)
	return n
}

// divided returns nil when all partitions have owners, and no two nodes differ by more
// than one partition.
func (c *costCluster) divided() error {
	owned, err := c.nodes[0].partitions(c.nodes[0].personal)
	if err != nil {
		return err
	}
	total := 0
	for _, n := range owned {
		total += n
		if n < c.variant.partitions/c.variant.nodes {
			return fmt.Errorf("owned: %v", owned)
		}
	}
	if len(owned) != c.variant.nodes || total != c.variant.partitions {
		return fmt.Errorf("owned: %v", owned)
	}
	return nil
}

// stop ends the nodes and removes their data.
func (c *costCluster) stop(t *testing.T) {
	for _, n := range c.nodes {
		n.kill(t)
		_ = os.RemoveAll(filepath.Join(n.dir, "events.ndjson"))
	}
	c.execute(t, "DROP DATABASE "+c.database+" WITH (FORCE)")
	if c.variant.log == "kafka" {
		output(t, c.broker.dir, c.broker.java("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", c.brokerAddress, "--delete", "--topic", c.database)...)
	}
}

// execute runs a statement on the server's first database.
func (b *costBench) execute(t *testing.T, statement string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, b.postgres.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatal(err)
	}
}

// drain waits until all accepted events are stored and delivered. It reads the metrics
// seldom, because that costs the nodes CPU, too.
func (c *costCluster) drain(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		stored := c.metric("guidon_ingestion_events_processed_total")
		delivered := c.metric("guidon_ingestion_deliver_events_total")
		if stored >= float64(c.accepted) && delivered >= float64(c.accepted) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d accepted, %.0f stored, %.0f delivered", c.accepted, stored, delivered)
		}
	}
}

// settle waits for what follows the last event: commits of cursors, garbage collection.
func (c *costCluster) settle(t *testing.T) {
	t.Helper()
	c.execute(t, "CHECKPOINT")
	time.Sleep(2 * time.Second)
}

// topicBytes returns the size of the topic on the disk of the broker, 0 without one.
func (c *costCluster) topicBytes(t *testing.T) (sum int64) {
	t.Helper()
	if c.variant.log != "kafka" {
		return 0
	}
	files, err := filepath.Glob(filepath.Join(c.broker.dir, "data", c.database+"-*", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil { // a segment may have been deleted
			sum += info.Size()
		}
	}
	return sum
}

// metric is the sum of a metric over its labels and all nodes.
func (c *costCluster) metric(name string) (sum float64) {
	for _, n := range c.nodes {
		res, err := http.Get("http://" + n.admin + "/metrics")
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			rest, ok := strings.CutPrefix(lines.Text(), name)
			if ok && (rest[0] == ' ' || rest[0] == '{') {
				value, _ := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
				sum += value
			}
		}
		_ = res.Body.Close()
	}
	return sum
}

// saveProfiles saves a CPU profile of the first node in the directory that COST_PROFILES
// names. The channel is closed at the end.
func (c *costCluster) saveProfiles(t *testing.T, load string) <-chan struct{} {
	saved := make(chan struct{})
	dir := os.Getenv("COST_PROFILES")
	if dir == "" {
		close(saved)
		return saved
	}
	go func() {
		defer close(saved)
		res, err := http.Get("http://" + c.nodes[0].admin + "/debug/pprof/profile?seconds=6")
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		profile, err := io.ReadAll(res.Body)
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, c.variant.name+"-"+load+".pprof"), profile, 0o600)); err != nil {
			t.Error(err)
		}
	}()
	return saved
}

// usage is CPU time.
type usage struct{ guidon, broker, postgres time.Duration }

func (u usage) minus(v usage) usage {
	return usage{u.guidon - v.guidon, u.broker - v.broker, u.postgres - v.postgres}
}

// usage is what the nodes with their plugins, the broker and Postgres have used.
func (c *costCluster) usage(t *testing.T) (u usage) {
	t.Helper()
	for _, n := range c.nodes {
		u.guidon += treeTime(t, n.cmd.Process.Pid)
	}
	if c.broker.software != nil {
		u.broker = treeTime(t, c.broker.cmd.Process.Pid)
	}
	u.postgres = treeTime(t, c.postgres.Pid())
	return u
}

// memory is the largest resident memory that a node has had, without its plugins.
func (c *costCluster) memory() (most int64) {
	for _, n := range c.nodes {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
		for line := range bytes.Lines(status) {
			if text, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
				kilobytes, _ := strconv.ParseInt(string(bytes.Fields(text)[0]), 10, 64)
				most = max(most, kilobytes<<10)
			}
		}
	}
	return most
}

// treeTime is the CPU time of a process and its child processes, those that have ended
// included.
func treeTime(t *testing.T, pid int) (total time.Duration) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		own := path == fmt.Sprintf("/proc/%d/stat", pid)
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if !own && string(fields[1]) != strconv.Itoa(pid) {
			continue
		}
		for i, field := range fields[11:15] { // of the process, then of its ended children
			if ticks, _ := strconv.Atoi(string(field)); i < 2 || own {
				total += time.Duration(ticks) * 10 * time.Millisecond
			}
		}
	}
	return total
}
