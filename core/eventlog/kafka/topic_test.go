package kafka_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/eventlog/kafka"
	"github.com/guidonhq/guidon/core/fault"
)

// client connects to the cluster of a node, beside its log.
func client(t *testing.T, n *node) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(n.cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// produceAt appends a record with a time, in a topic that keeps the times of producers.
func produceAt(t *testing.T, n *node, partition int32, at time.Time, text string) {
	t.Helper()
	must(t, client(t, n).ProduceSync(ctx(t), &kgo.Record{Topic: "guidon", Partition: partition, Timestamp: at, Value: []byte(text)}).FirstErr())
}

func TestTopicIsCreated(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	l := n.open(t)
	if l.Partitions() != 3 || !strings.HasPrefix(l.ID(), "kafka/") {
		t.Errorf("%d partitions of %s", l.Partitions(), l.ID())
	}
	got := n.cluster.TopicInfo("guidon").Configs
	for key, want := range map[string]string{
		"min.insync.replicas": "2", "retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete",
		"message.timestamp.type": "LogAppendTime", "unclean.leader.election.enable": "false", "max.message.bytes": "33619968",
	} {
		if got[key] == nil || *got[key] != want {
			t.Errorf("%s is %v, want %s", key, got[key], want)
		}
	}
}

func TestWeakTopicIsRefused(t *testing.T) {
	t.Parallel()
	strong := func() map[string]string {
		return map[string]string{"min.insync.replicas": "2", "max.message.bytes": "40000000", "retention.ms": "-1", "retention.bytes": "-1"}
	}
	for name, c := range map[string]struct {
		brokers  int
		settings map[string]string
		want     []string // nil for a topic that is accepted
	}{
		"strong":        {3, nil, nil},
		"days":          {3, map[string]string{"retention.ms": "86400000"}, nil},
		"a broker":      {1, nil, []string{"it has one replica"}},
		"one in sync":   {3, map[string]string{"min.insync.replicas": "1"}, []string{"min.insync.replicas is 1"}},
		"compact":       {3, map[string]string{"cleanup.policy": "compact"}, []string{"cleanup.policy is compact"}},
		"both policies": {3, map[string]string{"cleanup.policy": "delete,compact"}, []string{"cleanup.policy is delete,compact"}},
		"short":         {3, map[string]string{"retention.ms": "86399999"}, []string{"retention.ms is 86399999"}},
		"by size":       {3, map[string]string{"retention.bytes": "1"}, []string{"retention.bytes is 1"}},
		"small records": {3, map[string]string{"max.message.bytes": "1048588"}, []string{"max.message.bytes is 1048588"}},
		"all at once": {3, map[string]string{"min.insync.replicas": "1", "retention.ms": "1", "cleanup.policy": "compact"}, []string{
			"min.insync.replicas is 1", "retention.ms is 1", "cleanup.policy is compact",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, kfake.NumBrokers(c.brokers))
			settings := strong()
			for k, v := range c.settings {
				settings[k] = v
			}
			must(t, n.cluster.CreateTopic("guidon", 3, settings))
			_, err := n.tryOpen(t)
			if (err == nil) != (c.want == nil) {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "accept_weak_topic") {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			n.cfg.AcceptWeakTopic = true
			l := n.open(t)
			if logged := n.seen.FilterMessage("log topic is weak").Len(); (logged > 0) != (c.want != nil) {
				t.Errorf("the weakness is logged %d times", logged)
			}
			if c.settings["max.message.bytes"] != "" {
				err := l.Append(ctx(t), parts(0, strings.Repeat("x", 2<<20)))
				if err == nil || !strings.Contains(err.Error(), "record_too_large") {
					t.Errorf("an append above the limit of the topic: %v", err)
				}
			}
		})
	}
}

func TestNoTopicOnOneBroker(t *testing.T) {
	t.Parallel()
	n := newNode(t, kfake.NumBrokers(1))
	if _, err := n.tryOpen(t); err == nil || !strings.Contains(err.Error(), "three are needed") {
		t.Fatalf("got %v", err)
	}
	n.cfg.AcceptWeakTopic = true
	appendTo(t, n.open(t), 0, "one")
}

// TestFewerPartitions opens a topic that has fewer partitions than the config.
func TestFewerPartitions(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	must(t, n.open(t).Close(ctx(t)))
	n.cfg.Partitions = 12
	if _, err := n.tryOpen(t); err == nil || !strings.Contains(err.Error(), "has 3 partitions and journal.partitions is 12") || !strings.Contains(err.Error(), "set journal.partitions to 3") {
		t.Fatalf("got %v", err)
	}
	n.cfg.Partitions = 2
	if l := n.open(t); l.Partitions() != 3 {
		t.Errorf("%d partitions", l.Partitions())
	}
}

func TestMorePartitions(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	l := n.open(t)
	_, err := kadm.NewClient(client(t, n)).CreatePartitions(ctx(t), 2, "guidon")
	must(t, err)
	for c := ctx(t); n.seen.FilterMessageSnippet("log topic has more partitions").Len() == 0; {
		if l.CheckPartitions(); c.Err() != nil { // the client may know them a little later
			t.Fatal("more partitions are not logged")
		}
	}
	if l.Partitions() != 3 {
		t.Errorf("an open log has %d partitions", l.Partitions())
	}
	appendTo(t, l, 2, "one")
	must(t, l.Close(ctx(t)))
	if _, err := n.tryOpen(t); err == nil || !strings.Contains(err.Error(), "has 5 partitions now and had 3") {
		t.Fatalf("got %v", err)
	}
}

// TestReplacedByPartitions lets a node run on while another one accepts the topic with more
// partitions: the first refuses appends until it is restarted, and is not reachable.
func TestReplacedByPartitions(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	l := n.open(t)
	appendTo(t, l, 2, "one")
	_, err := kadm.NewClient(client(t, n)).CreatePartitions(ctx(t), 2, "guidon")
	must(t, err)
	other := *n
	other.cfg.AcceptOtherLog = true
	eventually(t, "the topic has 5 partitions", func() bool {
		second, err := other.tryOpen(t)
		return err == nil && second.Partitions() == 5
	})
	eventually(t, "the first node notices", func() bool { return fault.CodeOf(l.Broken()) == "log_replaced" })
	wantFault(t, l.Append(ctx(t), parts(0, "refused")), fault.Unavailable, "log_replaced")
	if l.Reachable() {
		t.Error("the log is reachable")
	}
	appendTo(t, other.open(t), 4, "two")
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	n.cfg.URL, n.cfg.StartTimeout = "kafka://u:pa55word@"+l.Addr().String()+"/guidon", time.Second
	_, err = n.tryOpen(t)
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) || strings.Contains(err.Error(), "pa55word") {
		t.Fatalf("got %v", err)
	}
}

// TestConnectErrors checks that a start which cannot talk to the brokers says which setting
// is wrong.
func TestConnectErrors(t *testing.T) {
	t.Parallel()
	plain := newNode(t)
	sasl := newNode(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "guidon", "password"))
	key, der := selfSigned(t)
	secure := newNode(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}))
	address := func(n *node) string { return n.cluster.ListenAddrs()[0] }
	for name, c := range map[string]struct {
		node      *node
		url, want string
	}{
		"nothing listens":     {plain, "kafka://127.0.0.1:1/guidon", "no broker answers"},
		"an unknown name":     {plain, "kafka://broker.invalid/guidon", "the name of the broker is not known"},
		"TLS to a plain port": {plain, "kafkas://" + address(plain) + "/guidon", "speaks TLS"},
		"plain to a TLS port": {secure, "kafka://" + address(secure) + "/guidon", "check tls and sasl"},
		"an unknown issuer":   {secure, "kafkas://" + address(secure) + "/guidon", "is not trusted; check ca_file"},
		"a wrong password":    {sasl, "kafka://guidon:wrong@" + address(sasl) + "/guidon", "the user \"guidon\""},
		"a wrong user":        {sasl, "kafka://other:password@" + address(sasl) + "/guidon", "the user \"other\""},
		"no user":             {sasl, "kafka://" + address(sasl) + "/guidon", "check tls and sasl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.node.failToConnect(t, c.url, func(logged string) bool { return strings.Contains(logged, c.want) })
			if err == nil || !strings.Contains(err.Error(), "journal.url: connect to") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// failToConnect returns the error of Open, which has as much time as it needs: it is given up
// when enough says so of what it has logged about the brokers.
func (n node) failToConnect(t *testing.T, url string, enough func(logged string) bool) error {
	t.Helper()
	core, seen := observer.New(zap.WarnLevel)
	n.cfg.URL, n.cfg.StartTimeout = url, patience
	starting, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	opened := make(chan error, 1)
	go func() {
		l, err := kafka.Open(starting, n.cfg, kafka.Options{Cursors: cursors.New(n.db), Log: zap.New(core)})
		if err == nil {
			_ = l.Close(context.Background())
		}
		opened <- err
	}()
	for {
		select {
		case err := <-opened:
			return err
		case <-time.After(5 * time.Millisecond):
		}
		for _, entry := range seen.FilterMessage("log brokers unreachable").All() {
			if enough(contextText(entry.ContextMap())) {
				giveUp()
			}
		}
	}
}

// TestTimeoutDoesNotHideAConnectError has a broker that closes connections, as one that
// expects TLS does, and later does not answer at all: the error names the first cause.
func TestTimeoutDoesNotHideAConnectError(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var silent atomic.Bool
	var held atomic.Int32
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			if silent.Load() {
				held.Add(1)
				defer func() { _ = c.Close() }()
				continue
			}
			_, _ = c.Read(make([]byte, 1<<10)) // a connection with unread data is reset
			_ = c.Close()
		}
	}()

	n := newNode(t)
	n.cfg.AppendTimeout = time.Second // an attempt takes half of it
	err = n.failToConnect(t, "kafka://"+listener.Addr().String()+"/guidon", func(logged string) bool {
		if strings.Contains(logged, "closed the connection") {
			silent.Store(true)
		}
		return held.Load() >= 4
	})
	if err == nil || !strings.Contains(err.Error(), "check tls and sasl") || !strings.Contains(err.Error(), "since then no broker answers") {
		t.Errorf("got %v", err)
	}
}

// selfSigned returns a key and a certificate for 127.0.0.1.
func selfSigned(t *testing.T) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	return key, der
}

func TestSASL(t *testing.T) {
	t.Parallel()
	const password = "p@ss/word"
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "guidon", password))
			address := n.cluster.ListenAddrs()[0]
			file := filepath.Join(t.TempDir(), "password")
			must(t, os.WriteFile(file, []byte(password+"\n"), 0o600))
			query := "/guidon?sasl=" + strings.ToLower(mechanism)
			for _, url := range []string{"kafka://guidon:p%40ss%2Fword@" + address + query, "kafka://guidon@" + address + query + "&password_file=" + file} {
				n.cfg.URL = url
				l := n.open(t)
				appendTo(t, l, 0, "one")
				must(t, l.Close(ctx(t)))
			}
			n.cfg.URL, n.cfg.Password = "kafka://guidon@"+address+query, password
			must(t, n.open(t).Close(ctx(t)))
			n.cfg.Password, n.cfg.StartTimeout = "wr0ng-password", 2*time.Second
			_, err := n.tryOpen(t)
			if err == nil || strings.Contains(err.Error(), n.cfg.Password) {
				t.Fatalf("got %v", err)
			}
			for _, entry := range n.seen.All() {
				if text := entry.Message + contextText(entry.ContextMap()); strings.Contains(text, password) || strings.Contains(text, n.cfg.Password) {
					t.Errorf("logged: %s", text)
				}
			}
		})
	}
}

func contextText(m map[string]any) (text string) {
	for k, v := range m {
		if s, ok := v.(string); ok {
			text += " " + k + "=" + s
		}
	}
	return text
}

func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{"broker"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	certFile, keyFile := write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", private)
	ca := x509.NewCertPool()
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	ca.AddCert(cert)
	n := newNode(t, kfake.TLS(&tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca,
	}))
	host := "kafkas://" + n.cluster.ListenAddrs()[0] + "/guidon?ca_file=" + certFile
	n.cfg.URL = host + "&cert_file=" + certFile + "&key_file=" + keyFile + "&server_name=broker"
	appendTo(t, n.open(t), 0, "one")
	for _, url := range []string{
		host, // no certificate of the client
		strings.Replace(n.cfg.URL, "server_name=broker", "server_name=other", 1),
		strings.Replace(n.cfg.URL, "ca_file="+certFile, "ca_file="+keyFile, 1),
		n.cfg.URL + ".not-there",
	} {
		bad := *n
		bad.cfg.URL, bad.cfg.StartTimeout = url, 2*time.Second
		if strings.HasSuffix(url, "not-there") {
			bad.cfg.URL = strings.Replace(n.cfg.URL, "key_file="+keyFile, "key_file="+keyFile+".not-there", 1)
		}
		if l, err := bad.tryOpen(t); err == nil {
			_ = l.Close(context.Background())
			t.Errorf("%s is accepted", url)
		}
	}
}
