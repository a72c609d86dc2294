//go:build e2e

package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// refusalTimeout is within which a start that cannot succeed has to end.
const refusalTimeout = 3 * time.Minute

// TestBadInput starts servers of a cluster with mistakes in their settings, beside one that
// takes events in. Each ends with exit code 1 and says what is wrong, which setting it is,
// and how to go on. A broker that goes away later stops no server. No event is lost.
func TestBadInput(t *testing.T) {
	t.Parallel()
	k, at := startGuardedKafka(t)
	database := dbtest.PostgresURL(t)
	good := newNode(t, "good", database, "kafka://"+at.plain+"/good")
	launch(t, good.software)
	good.readPrintedKeys(t)
	good.terminate(t)
	copied := copyDatabase(t, database)
	newer := copyDatabase(t, database)
	execute(t, newer, "INSERT INTO schema_migrations (number, name, applied_at) VALUES (9999, 'later', 0)")
	foreign := dbtest.EmptyPostgresURL(t)
	execute(t, foreign, "CREATE TABLE events (at timestamptz)", "CREATE TABLE users (name text)")
	createTopic(t, at.plain, "few", 3, nil)
	createTopic(t, at.plain, "short", 6, map[string]string{"retention.ms": "3600000", "min.insync.replicas": "1"})
	createTopic(t, at.plain, "compacted", 6, map[string]string{"cleanup.policy": "compact"})
	good.start(t)

	stop, accepted, failed := make(chan struct{}), &atomic.Int64{}, &atomic.Int64{}
	var writers sync.WaitGroup
	counts := make([]int, 3)
	for i := range counts {
		writers.Go(func() {
			counts[i] = writer(stop, 10*time.Millisecond, good.project, fmt.Sprint("person", i), []*node{good}, accepted, failed)
		})
	}
	ended := sync.OnceFunc(func() { close(stop); writers.Wait() })
	defer ended()

	fresh := func() string { return dbtest.PostgresURL(t) }
	for _, c := range []struct {
		name          string
		database, log string
		settings      []string
		want          []string
	}{
		{"a name that nobody has", fresh(), "kafka://broker.invalid:9092/a", nil, []string{"journal.url: connect to [broker.invalid:9092]", "the name of the broker is not known"}},
		{"nothing listens", fresh(), "kafka://" + freeAddress(t) + "/a", nil, []string{"journal.url: connect to", "no broker answers; check the addresses"}},
		{"no broker", fresh(), "kafka://" + good.admin + "/a", nil, []string{"journal.url: connect to [" + good.admin + "]", "check the addresses"}},
		{"TLS to a plain port", fresh(), "kafkas://" + at.plain + "/a", nil, []string{"journal.url: connect to", "check that this port speaks TLS, or use kafka://"}},
		{"plain to a TLS port", fresh(), "kafka://" + at.tls + "/a", nil, []string{"journal.url: connect to", "this port speaks TLS; use kafkas://"}},
		{"an issuer that is not trusted", fresh(), "kafkas://" + at.tls + "/a", nil, []string{"journal.url: connect to", "is not trusted; check ca_file"}},
		{"another name in the certificate", fresh(), "kafkas://" + at.tls + "/a?server_name=other&ca_file=" + at.certificate, nil, []string{"journal.url: connect to", "check ca_file and server_name"}},
		{"a wrong password", fresh(), "kafka://guidon@" + at.sasl + "/a?sasl=plain", []string{"GUIDON_JOURNAL_PASSWORD=wr0ng"}, []string{"journal.url: connect to", `the brokers refuse the user "guidon" or its password`}},
		{"no user", fresh(), "kafka://" + at.sasl + "/a", nil, []string{"journal.url: connect to", "check tls and sasl"}},
		{"another mechanism", fresh(), "kafka://guidon@" + at.sasl + "/a?sasl=scram-sha-512", []string{"GUIDON_JOURNAL_PASSWORD=secret"}, []string{"journal.url: connect to", "the brokers do not take sasl=scram-sha-512"}},
		{"few partitions", fresh(), "kafka://" + at.plain + "/few", nil, []string{"the topic few has 3 partitions and journal.partitions is 6", "set journal.partitions to 3"}},
		{"one replica", fresh(), "kafka://" + at.plain + "/few", []string{"GUIDON_JOURNAL_PARTITIONS=3", weakRefused}, []string{"the topic few may lose acknowledged events: it has one replica", "min.insync.replicas is 1", "journal.accept_weak_topic"}},
		{"one broker", fresh(), "kafka://" + at.plain + "/new", []string{weakRefused}, []string{"the topic new does not exist", "three are needed", "Add brokers, or set journal.accept_weak_topic"}},
		{"a short retention", fresh(), "kafka://" + at.plain + "/short", []string{weakRefused}, []string{"retention.ms is 3600000, less than 24h", "Change the topic, or set journal.accept_weak_topic"}},
		{"a compacted topic", fresh(), "kafka://" + at.plain + "/compacted", []string{weakRefused}, []string{"cleanup.policy is compact"}},
		{"a database of a newer version", newer, "kafka://" + at.plain + "/good", nil, []string{"database is at schema 9999", "run a newer guidon"}},
		{"a database of something else", foreign, "kafka://" + at.plain + "/a", nil, []string{"the database contains tables of another application", "database.url"}},
		{"no such database", strings.Replace(fresh(), "/guidon", "/nothing", 1), "kafka://" + at.plain + "/a", nil, []string{"database"}},
		{"another log of the database", database, "kafka://" + at.plain + "/other", nil, []string{"this database belongs to the log kafka/"}},
		{"another database of the topic", fresh(), "kafka://" + at.plain + "/good", nil, []string{"the topic good belongs to another database", "set another topic in journal.url"}},
		{"a copy of the database", copied, "kafka://" + at.plain + "/good", nil, []string{"the topic good belongs to another copy of this database", "journal.accept_other_log"}},
		{"a journal of its own", database, "", nil, []string{"journal.url"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := refused(t, c.database, c.log, c.settings)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in:\n%s", want, tail([]byte(text), 3000))
				}
			}
			if strings.Contains(text, "wr0ng") || strings.Contains(text, "goroutine ") {
				t.Errorf("output:\n%s", tail([]byte(text), 3000))
			}
		})
	}

	t.Run("brokers that go away later", func(t *testing.T) {
		before := accepted.Load()
		eventually(t, 2*time.Minute, "events are accepted", func() error { return atLeast(accepted, before+10) })
		k.kill(t)
		before = failed.Load()
		eventually(t, 2*time.Minute, "requests are refused", func() error { return atLeast(failed, before+1) })
		eventually(t, 2*time.Minute, "the server is not ready", func() error {
			return good.status(http.MethodGet, "/_readiness", nil, http.StatusServiceUnavailable)
		})
		k.start(t)
		eventually(t, 5*time.Minute, "the server is ready", good.ready)
		before = accepted.Load()
		eventually(t, 2*time.Minute, "events are accepted again", func() error { return atLeast(accepted, before+10) })
	})
	ended()
	checkStored(t, database, counts)
}

// weakRefused takes back what newNode sets.
const weakRefused = "GUIDON_JOURNAL_ACCEPT_WEAK_TOPIC=false"

func atLeast(n *atomic.Int64, want int64) error {
	if got := n.Load(); got < want {
		return fmt.Errorf("%d of %d", got, want)
	}
	return nil
}

// refused starts a server that has to end with exit code 1, and returns its output.
func refused(t *testing.T, database, log string, settings []string) string {
	t.Helper()
	n := newNode(t, "bad", database, log)
	last := len(n.command) - 2
	command := append(append(n.command[:last:last], append([]string{"GUIDON_JOURNAL_START_TIMEOUT=5s"}, settings...)...), n.command[last:]...)
	ctx, cancel := context.WithTimeout(t.Context(), refusalTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = n.dir
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, %v", code, ctx.Err())
	}
	return string(out)
}

// execute runs statements in a database.
func execute(t *testing.T, database string, statements ...string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	for _, statement := range statements {
		if _, err := c.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// copyDatabase copies a database that nothing is connected to, and returns the URL of the
// copy.
func copyDatabase(t *testing.T, database string) string {
	t.Helper()
	to := dbtest.EmptyPostgresURL(t)
	from, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	admin := *target
	admin.Path = "/postgres"
	name := func(u *url.URL) string { return pgx.Identifier{strings.TrimPrefix(u.Path, "/")}.Sanitize() }
	execute(t, admin.String(), "DROP DATABASE "+name(target), "CREATE DATABASE "+name(target)+" TEMPLATE "+name(from))
	return to
}

func createTopic(t *testing.T, address, name string, partitions int32, settings map[string]string) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	values := map[string]*string{}
	for key, value := range settings {
		values[key] = &value
	}
	r, err := kadm.NewClient(c).CreateTopic(t.Context(), partitions, 1, values, name)
	if err = errors.Join(err, r.Err); err != nil {
		t.Fatal(err)
	}
}

// guarded are the addresses of a broker, and the file with its certificate.
type guarded struct{ plain, tls, sasl, certificate string }

// startGuardedKafka starts a broker with a plain port, one for TLS and one for the user
// guidon with the password secret.
func startGuardedKafka(t *testing.T) (k kafka, at guarded) {
	t.Helper()
	k.lib = filepath.Join(install(t, "kafka"), "lib")
	dir, controller := t.TempDir(), freeAddress(t)
	at = guarded{freeAddress(t), freeAddress(t), freeAddress(t), ""}
	var keyStore string
	keyStore, at.certificate = brokerCertificate(t, dir)
	config := writeFile(t, dir, "server.properties", `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[4]s
listeners=PLAINTEXT://%[1]s,SSL://%[2]s,SASL_PLAINTEXT://%[3]s,CONTROLLER://%[4]s
advertised.listeners=PLAINTEXT://%[1]s,SSL://%[2]s,SASL_PLAINTEXT://%[3]s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="guidon" password="secret" user_guidon="secret";
ssl.keystore.type=PEM
ssl.keystore.location=%[6]s
log.dirs=%[5]s
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
`, at.plain, at.tls, at.sasl, controller, filepath.Join(dir, "data"), keyStore)
	output(t, dir, k.java("kafka.tools.StorageTool", "format", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg", "--config", config)...)
	k.software = launch(t, &software{name: "kafka", dir: dir, ready: listening(at.plain), command: k.java("kafka.Kafka", config)})
	return k, at
}

// brokerCertificate writes a key with a certificate for 127.0.0.1, and the certificate alone.
func brokerCertificate(t *testing.T, dir string) (keyStore, certificate string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return writeFile(t, dir, "broker.pem", "%s%s", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), public), writeFile(t, dir, "cert.pem", "%s", public)
}
