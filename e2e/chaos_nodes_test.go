//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// chaosNodes is the number of nodes that a round has at most.
const chaosNodes = 4

// chaosNode is a node, which faults end and start again. Its connections to the
// brokers, to Postgres and to ClickHouse go through links of its own.
type chaosNode struct {
	name, dir   string
	program     string
	server      // addresses and keys
	environment []string
	brokers     []*link
	base        *link
	events      *link // to ClickHouse; nil with the events in Postgres

	cmd     *exec.Cmd
	ended   chan struct{} // closed when cmd has ended
	stopped atomic.Bool   // by the test
	served  atomic.Bool   // it was ready since it started
}

// stableAddress returns a loopback address for a program that is started again. Its
// port is below those that the kernel hands out, so that no connection takes it. While the
// program is down, the UDP port of this number keeps other tests, also those of another
// process, from it.
func stableAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		reserved, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			_ = reserved.Close()
			continue
		}
		_ = l.Close()
		t.Cleanup(func() { _ = reserved.Close() })
		return address
	}
	t.Fatal("no free port")
	return ""
}

// startSoftware starts Postgres, the brokers and ClickHouse, with a link of each node to each.
func (c *chaos) startSoftware() {
	c.Helper()
	c.store = dbtest.StartKillable(c.T)
	conn, err := pgx.Connect(c.Context(), c.store.URL)
	if err == nil {
		_, err = conn.Exec(c.Context(), "CREATE DATABASE guidon")
	}
	if err != nil {
		c.Fatal(err)
	}
	_ = conn.Close(c.Context())
	socket := filepath.Join(c.storeURL().Query().Get("host"), ".s.PGSQL.5432")
	for i := range chaosNodes {
		c.nodes = append(c.nodes, &chaosNode{name: fmt.Sprint("node", i+1), base: newLink(c.T, "unix", socket)})
	}
	if c.options.clickhouse {
		c.startClickHouse()
	}
	if c.options.brokers > 0 {
		c.prepareBrokers()
	}
	for _, n := range c.nodes {
		c.prepareNode(n)
	}
	for _, b := range c.brokers { // none is ready before most of them run
		ready := b.ready
		b.ready = func() error { return nil }
		launch(c.T, b.software)
		b.ready = ready
	}
	eventually(c.T, 4*time.Minute, "the brokers are ready", func() error {
		for _, b := range c.brokers {
			if err := b.ready(); err != nil {
				return err
			}
		}
		return nil
	})
}

// prepareBrokers formats brokers, each of which is a controller, too. A broker has a
// listener for each node, and advertises the link of the node there.
func (c *chaos) prepareBrokers() {
	c.Helper()
	lib := filepath.Join(install(c.T, "kafka"), "lib")
	var voters, controllers []string
	for i := range c.options.brokers {
		controllers = append(controllers, stableAddress(c.T))
		voters = append(voters, fmt.Sprintf("%d@%s", i+1, controllers[i]))
	}
	for i := range c.options.brokers {
		own, dir := stableAddress(c.T), filepath.Join(c.dir, fmt.Sprint("broker", i+1))
		listen, advertise, protocols := "", "", ""
		for j, n := range c.nodes {
			address := stableAddress(c.T)
			n.brokers = append(n.brokers, newLink(c.T, "tcp", address))
			listen += fmt.Sprintf(",NODE%d://%s", j, address)
			advertise += fmt.Sprintf(",NODE%d://%s", j, n.brokers[i].address)
			protocols += fmt.Sprintf(",NODE%d:PLAINTEXT", j)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			c.Fatal(err)
		}
		config := writeFile(c.T, dir, "server.properties", `process.roles=broker,controller
node.id=%[1]d
controller.quorum.voters=%[2]s
listeners=PLAINTEXT://%[3]s,CONTROLLER://%[4]s%[5]s
advertised.listeners=PLAINTEXT://%[3]s%[6]s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT%[7]s
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs=%[8]s
`, i+1, strings.Join(voters, ","), own, controllers[i], listen, advertise, protocols, filepath.Join(dir, "data"))
		k := kafka{lib: lib, brief: true}
		output(c.T, dir, k.java("kafka.tools.StorageTool", "format", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg", "--config", config)...)
		k.software = &software{name: fmt.Sprint("broker", i+1), dir: dir, ready: listening(own), command: k.java("kafka.Kafka", config)}
		c.brokers = append(c.brokers, k)
	}
}

func (c *chaos) storeURL() *url.URL {
	u, err := url.Parse(c.store.URL)
	if err != nil {
		c.Fatal(err)
	}
	u.Path = "/guidon"
	return u
}

// prepareNode sets the addresses and settings of a node.
func (c *chaos) prepareNode(n *chaosNode) {
	n.dir, n.program = filepath.Join(c.dir, n.name), c.program
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		c.Fatal(err)
	}
	address := stableAddress(c.T)
	n.url, n.admin = "http://"+address, stableAddress(c.T)
	yaml := "plugins:\n  instances:\n" + sinkYAML("posted", "webhook", fmt.Sprintf("url: %s\nformat: ndjson\nmax_events: 100\nallow_networks: [127.0.0.0/8]\n", c.sink.url)) +
		instanceYAML("team", "notifier", "webhook", fmt.Sprintf("url: %s\nallow_networks: [127.0.0.0/8]\n", c.inbox.url))
	config := writeFile(c.T, n.dir, "guidon.yaml", "%s", yaml)
	n.environment = append(os.Environ(),
		"GUIDON_CONFIG="+config,
		"GUIDON_HTTP_ADDRESS="+address, "GUIDON_HTTP_ADMIN_ADDRESS="+n.admin, "GUIDON_HTTP_MANAGE_RATE_PER_SECOND=0",
		"GUIDON_DATA_DIR="+filepath.Join(n.dir, "data"),
		"GUIDON_DATABASE_URL=postgres://postgres@"+n.base.address+"/guidon?sslmode=disable",
		"GUIDON_CLUSTER_ENABLED=true", "GUIDON_CLUSTER_NAME="+n.name,
		"GUIDON_JOURNAL_URL="+n.logURL(),
		"GUIDON_JOURNAL_PARTITIONS="+fmt.Sprint(chaosPartitions), fmt.Sprint("GUIDON_JOURNAL_ACCEPT_WEAK_TOPIC=", c.options.brokers == 1),
		"GUIDON_NOTIFICATIONS_EVERY="+c.options.rate.String(), "GUIDON_NOTIFICATIONS_RETRY_MIN=100ms", "GUIDON_NOTIFICATIONS_RETRY_MAX=5s", "GUIDON_NOTIFICATIONS_MAX_ATTEMPTS=1000",
		"GUIDON_JOURNAL_MAX_AGE=5s") // records that are done are deleted while the round runs
	if c.options.smallTail {
		n.environment = append(n.environment, "GUIDON_JOURNAL_TAIL_BYTES=10000") // records are read from the broker
	}
	if n.events != nil {
		n.environment = append(n.environment, "GUIDON_EVENTS_URL="+clickhouseURL(n.events.address))
	}
	if shift, ok := c.options.clocks[n.name]; ok {
		c.shiftClock(n, shift)
	}
	c.Cleanup(func() {
		n.kill()
		if log, err := os.ReadFile(n.log()); err == nil && c.Failed() {
			c.Logf("log of %s:\n%s", n.name, tail(log, 1500))
		}
	})
}

// logURL returns the address of the log as the node sees it.
func (n *chaosNode) logURL() string {
	if len(n.brokers) == 0 {
		return "postgres"
	}
	var addresses []string
	for _, l := range n.brokers {
		addresses = append(addresses, l.address)
	}
	return "kafka://" + strings.Join(addresses, ",") + "/events"
}

func (n *chaosNode) log() string { return filepath.Join(n.dir, "log") }

// launch starts the process.
func (n *chaosNode) launch(c *chaos) {
	log, err := os.OpenFile(n.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(n.program, "serve")
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = n.environment, n.dir, log, log
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	ended := make(chan struct{})
	n.stopped.Store(false)
	n.served.Store(false)
	go func() {
		defer close(ended)
		_ = cmd.Wait()
		if n.stopped.Load() {
			return
		}
		c.notef("%s has ended by itself: %s", n.name, cmd.ProcessState)
		if n.served.Load() {
			c.Errorf("%s was ready and has ended by itself: %s", n.name, cmd.ProcessState)
		}
	}()
	n.cmd, n.ended = cmd, ended
}

// running reports whether the process runs.
func (n *chaosNode) running() bool {
	if n.cmd == nil {
		return false
	}
	select {
	case <-n.ended:
		return false
	default:
		return true
	}
}

// start starts the node, and again when it ends because it cannot reach the broker or
// Postgres, as a supervisor does. It returns when the node is ready.
func (n *chaosNode) start(c *chaos) {
	c.Helper()
	eventually(c.T, 4*time.Minute, n.name+" is ready", func() error {
		if !n.running() {
			n.launch(c)
		}
		time.Sleep(30 * time.Millisecond)
		return n.ready()
	})
}

// ready returns nil when the node answers that it is ready.
func (n *chaosNode) ready() error {
	ask := http.Client{Timeout: 5 * time.Second}
	answer, err := ask.Get(n.url + "/_readiness")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d", n.name, answer.StatusCode)
	}
	n.served.Store(true)
	return nil
}

func (n *chaosNode) signal(s syscall.Signal) {
	if n.running() {
		_ = n.cmd.Process.Signal(s) // fails if it has ended
	}
}

// kill ends the process with SIGKILL, also when it is stopped.
func (n *chaosNode) kill() {
	if n.cmd != nil {
		n.stopped.Store(true)
		_ = n.cmd.Process.Kill() // fails if it has ended
		<-n.ended
	}
}

// readProjectKey reads the keys that the first node has printed.
func (c *chaos) readProjectKey() {
	first := c.nodes[0]
	eventually(c.T, time.Minute, "the first run has printed its keys", func() error {
		log, err := os.ReadFile(first.log())
		if err != nil {
			return err
		}
		first.readKeys(log)
		if first.project == "" || first.personal == "" {
			return fmt.Errorf("output: %s", tail(log, 2000))
		}
		return nil
	})
	c.project = first.project
	for _, n := range c.nodes {
		n.project, n.personal = first.project, first.personal
	}
}

// dumpDatabase writes tables to files, as CSV.
func (c *chaos) dumpDatabase() {
	u := c.storeURL()
	conn, err := pgx.Connect(context.Background(), u.String())
	if err != nil {
		c.Logf("dump the database: %v", err)
		return
	}
	defer conn.Close(context.Background())
	if c.clickhouse != nil {
		c.clickhouse.dump(c)
	}
	for name, query := range map[string]string{
		"events":            "SELECT id, uuid, event, distinct_id, properties FROM events ORDER BY id",
		"cluster_leases":    "SELECT * FROM cluster_leases",
		"cluster_nodes":     "SELECT * FROM cluster_nodes",
		"log_cursors":       "SELECT * FROM log_cursors",
		"ingestion_cursors": "SELECT * FROM ingestion_cursors",
		"dead_letters":      "SELECT * FROM dead_letters",
		"erasures":          "SELECT * FROM erasures",
		"event_erasures":    "SELECT * FROM event_erasures",
		"event_outbox":      "SELECT first_row, last_row, checked, bytes FROM event_outbox",
		"event_insertion":   "SELECT * FROM event_insertion",
		"notifications":     "SELECT * FROM notifications ORDER BY id",
		"lanes":             "SELECT * FROM notification_lanes",
		"rates":             "SELECT * FROM notification_rates",
	} {
		f, err := os.Create(filepath.Join(c.dir, name+".csv"))
		if err == nil {
			_, err = conn.PgConn().CopyTo(context.Background(), f, "COPY ("+query+") TO STDOUT WITH (FORMAT csv, HEADER)")
			_ = f.Close()
		}
		if err != nil {
			c.Logf("dump %s: %v", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(c.dir, "arrivals"), []byte(strings.Join(c.sink.arrivals(), "\n")), 0o600); err != nil {
		c.Log(err)
	}
}
