//go:build e2e

package e2e_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestDestinationNATS reads the stream of the nats sink with the client of NATS: each
// event is there once, as the server drops messages that it knows.
func TestDestinationNATS(t *testing.T) {
	longTest(t)
	t.Parallel()
	dir, address := t.TempDir(), freeAddress(t)
	config := writeFile(t, dir, "nats.conf", "listen: %q\njetstream {store_dir: %q}\nauthorization {user: guidon, password: \"p@ss w%%rd/x\"}\n", address, dir)
	broker := launch(t, &software{
		name: "nats-server", dir: dir, ready: listening(address),
		command: []string{filepath.Join(install(t, "nats"), "nats-server"), "-c", config},
	})
	s := startWith(t, sinkYAML("stream", "nats", fmt.Sprintf("servers: [\"nats://%s\"]\ncreate: true\nuser: guidon\npassword: \"p@ss w%%rd/x\"", address)))
	want := deliver(t, s, broker.behind(t, s, "stream"))
	c, err := nats.Connect("nats://"+address, nats.UserInfo("guidon", "p@ss w%rd/x"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	js, err := jetstream.New(c)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "GUIDON_EVENTS") // with its number of messages
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := stream.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	arrived, order := arrivals{}, []string{}
	for range stream.CachedInfo().State.Msgs {
		m, err := consumer.Next(jetstream.FetchMaxWait(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		id := strings.TrimPrefix(m.Headers().Get("Nats-Msg-Id"), "1/")
		arrived.checkLine(t, want, id, string(m.Data()))
		order = append(order, id)
	}
	arrived.checkOnce(t, want)
	checkOrder(t, want, order)
}

// TestDestinationKafka reads the topic of the kafka sink with the console consumer of
// Apache Kafka. A record may come twice: the header uuid tells.
func TestDestinationKafka(t *testing.T) {
	longTest(t)
	t.Parallel()
	broker, address := startKafka(t)
	s := startWith(t, sinkYAML("stream", "kafka", fmt.Sprintf("brokers: [%q]", address)))
	want := deliver(t, s, broker.behind(t, s, "stream"))
	records := output(t, broker.dir, broker.java("org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", address, "--topic", "events",
		"--from-beginning", "--max-messages", fmt.Sprint(broker.records(t, address)), "--timeout-ms", "120000",
		"--formatter-property", "print.headers=true", "--formatter-property", "print.key=true")...)
	arrived, order := arrivals{}, []string{}
	for record := range strings.Lines(string(records)) {
		parts := strings.SplitN(strings.TrimSuffix(record, "\n"), "\t", 3) // headers, key, value
		if len(parts) != 3 || !strings.HasPrefix(parts[0], "uuid:") {
			t.Fatalf("record %q", record)
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(parts[0], "uuid:"), ",")
		arrived.checkLine(t, want, id, parts[2])
		if !strings.Contains(parts[2], fmt.Sprintf(`"distinct_id":%q`, parts[1])) {
			t.Fatalf("the key is %s: %s", parts[1], parts[2])
		}
		order = append(order, id)
	}
	arrived.checkComplete(t, want)
	checkOrder(t, want, order)
}

// kafka is the server of Apache Kafka and its tools.
type kafka struct {
	*software
	lib   string
	brief bool // processes are restarted often: the optimizing compiler does not pay
}

// java is the command of a class, with a small heap.
func (k kafka) java(class string, arguments ...string) []string {
	command := []string{"java", "-Xmx256m"}
	if k.brief {
		command = append(command, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
	}
	return append(append(command, "-cp", filepath.Join(k.lib, "*"), class), arguments...)
}

// records is the number of records in the topic events.
func (k kafka) records(t *testing.T, address string) (n int) {
	t.Helper()
	offsets := output(t, k.dir, k.java("org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", address, "--topic", "events")...)
	for line := range strings.Lines(string(offsets)) { // topic:partition:offset
		end, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndex(line, ":")+1:]))
		if err != nil {
			t.Fatalf("%v: %s", err, offsets)
		}
		n += end
	}
	return n
}

// startKafka starts a single server, which is broker and controller, and makes the
// topic events.
func startKafka(t *testing.T) (k kafka, address string) {
	t.Helper()
	k.lib = filepath.Join(install(t, "kafka"), "lib")
	dir, controller := t.TempDir(), freeAddress(t)
	address = freeAddress(t)
	config := writeFile(t, dir, "server.properties", `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[2]s
listeners=PLAINTEXT://%[1]s,CONTROLLER://%[2]s
advertised.listeners=PLAINTEXT://%[1]s
controller.listener.names=CONTROLLER
log.dirs=%[3]s
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
`, address, controller, filepath.Join(dir, "data"))
	output(t, dir, k.java("kafka.tools.StorageTool", "format", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg", "--config", config)...)
	k.software = launch(t, &software{name: "kafka", dir: dir, ready: listening(address), command: k.java("kafka.Kafka", config)})
	output(t, dir, k.java("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", address, "--create", "--topic", "events", "--partitions", "3")...)
	return k, address
}
