//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// The requests of a person in each phase of TestJournalMove, each with movedBatch events.
const (
	movedPersons  = 20
	movedRequests = 60
	movedBatch    = 10
)

// movedEvents captures the next requests of each person, and adds their events to counts.
func movedEvents(t *testing.T, n *node, requests int, counts []int) {
	t.Helper()
	padding := strings.Repeat("x", 1000)
	var writers sync.WaitGroup
	for person := range counts {
		writers.Go(func() {
			for range requests {
				body := fmt.Appendf(nil, `{"api_key":%q,"batch":[`, n.project)
				for i := range movedBatch {
					if i > 0 {
						body = append(body, ',')
					}
					body = fmt.Appendf(body, `{"event":"e","distinct_id":"person%d","uuid":%q,"properties":{"n":%d,"padding":%q}}`, person, uuid.NewString(), counts[person]+i+1, padding)
				}
				res, err := http.Post(n.url+"/batch/", "application/json", bytes.NewReader(append(body, ']', '}')))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				if res.StatusCode != http.StatusOK {
					t.Errorf("status %d", res.StatusCode)
					return
				}
				counts[person] += movedBatch
			}
		})
	}
	writers.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// TestJournalMove moves a journal with events that were not delivered, and events that
// were not processed, to a topic of Kafka. The move is killed in the middle and run again.
// A server on the topic stores each event once, in the order of its person, and delivers
// all of them in that order.
func TestJournalMove(t *testing.T) {
	longTest(t)
	t.Parallel()
	broker, address := startKafka(t)
	postgres, database := movedDatabase(t)
	log, lines := "kafka://"+address+"/moved", filepath.Join(t.TempDir(), "lines")
	config := writeFile(t, filepath.Dir(lines), "guidon.yaml", "plugins:\n  instances:\n%s", sinkYAML("lines", "file", "path: "+lines))
	old := newNode(t, "old", database, "", "GUIDON_CONFIG="+config)
	for i, v := range old.command {
		if v == "GUIDON_CLUSTER_ENABLED=true" {
			old.command[i] = "GUIDON_CLUSTER_ENABLED=false"
		}
	}
	launch(t, old.software)
	old.readPrintedKeys(t)
	operators := &server{url: "http://" + old.admin, project: old.project, personal: old.personal}
	counts := make([]int, movedPersons)
	movedEvents(t, old, 5, counts)
	operators.do(t, http.MethodPost, "/api/plugins/lines/pause", nil, nil, http.StatusOK)
	movedEvents(t, old, movedRequests/2, counts) // processed, not delivered
	postgres.Kill(t)
	movedEvents(t, old, movedRequests, counts) // not processed
	old.kill(t)
	postgres.Start(t)

	move := newNode(t, "move", database, log, "GUIDON_CONFIG="+config)
	for i, v := range move.command {
		if strings.HasPrefix(v, "GUIDON_DATA_DIR=") {
			move.command[i] = "GUIDON_DATA_DIR=" + old.dir
		}
	}
	killMove(t, move, address, filepath.Join(broker.dir, "data"))
	text, code := move.run(t, "journal", "move", "-o", "json")
	var report struct {
		Resumed bool
		Records int64
	}
	if err := json.Unmarshal([]byte(text), &report); err != nil || code != 0 || report.Records == 0 {
		t.Fatalf("the second move ends with %d: %v: %s", code, err, text)
	}
	t.Logf("the second move continued: %v, with %d records", report.Resumed, report.Records)
	if text, code := move.run(t, "journal", "move"); code != 0 || !strings.Contains(text, "moved 0 records") {
		t.Errorf("a third move ends with %d: %s", code, text)
	}

	launch(t, move.software)
	if text, code := move.run(t, "journal", "move"); code == 0 || !strings.Contains(text, "stop them before the journal is moved") {
		t.Errorf("a move beside a running server ends with %d: %s", code, text)
	}
	operators.url = "http://" + move.admin
	operators.do(t, http.MethodPost, "/api/plugins/lines/resume", nil, nil, http.StatusOK)
	checkStored(t, database, counts)
	checkMovedLines(t, lines, counts)
}

// movedDatabase starts a server of Postgres that the test stops.
func movedDatabase(t *testing.T) (server *dbtest.Killable, database string) {
	t.Helper()
	server = dbtest.StartKillable(t)
	c, err := pgx.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if _, err := c.Exec(t.Context(), "CREATE DATABASE guidon"); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/guidon"
	return server, u.String()
}

// killMove runs a move and kills it with SIGKILL as soon as the topic has a record of it
// in the directory of the broker.
func killMove(t *testing.T, n *node, address, data string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	limit := func(remove bool) { // of producers, in bytes a second: the move lasts seconds
		done, err := admin.AlterClientQuotas(t.Context(), []kadm.AlterClientQuotaEntry{{
			Entity: kadm.ClientQuotaEntity{{Type: "client-id"}}, Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 20 << 10, Remove: remove}},
		}})
		if err != nil || len(done) != 1 || done[0].Err != nil {
			t.Fatalf("set a quota: %v %+v", err, done)
		}
	}
	limit(false)
	defer limit(true)
	command := append(n.command[:len(n.command)-1:len(n.command)-1], "journal", "move")
	cmd := exec.Command(command[0], command[1:]...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for moved := int64(0); moved == 0; time.Sleep(time.Millisecond) {
		files, _ := filepath.Glob(filepath.Join(data, "moved-*", "*.log"))
		for _, file := range files {
			if info, err := os.Stat(file); err == nil {
				moved += info.Size()
			}
		}
		select {
		case err := <-ended:
			t.Fatalf("the move has ended before it was killed: %v: %s", err, output.String())
		case <-ctx.Done():
			t.Fatal("the move appends nothing")
		default:
		}
	}
	_ = cmd.Process.Kill()
	if err := <-ended; err == nil {
		t.Fatalf("the move has ended before it was killed: %s", output.String())
	}
}

// checkMovedLines checks that all events are in the file of the sink, those of a person
// in their order where they are there for the first time.
func checkMovedLines(t *testing.T, file string, counts []int) {
	t.Helper()
	want := 0
	for _, n := range counts {
		want += n
	}
	var seen map[string]bool
	repeated := 0
	eventually(t, 2*time.Minute, "all events are delivered", func() error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		seen, repeated = map[string]bool{}, 0
		next := map[string]int{}
		for line := range strings.Lines(string(text)) {
			e, complete := parseLine(line)
			if !complete || e.Event != "e" {
				continue
			}
			if seen[e.UUID] {
				repeated++
				continue
			}
			seen[e.UUID] = true
			var p struct{ N int }
			if err := json.Unmarshal(e.Properties, &p); err != nil {
				t.Fatal(err)
			}
			if next[e.DistinctID]++; p.N != next[e.DistinctID] {
				t.Fatalf("event %d of %s is delivered, want %d", p.N, e.DistinctID, next[e.DistinctID])
			}
		}
		if len(seen) < want {
			return fmt.Errorf("%d of %d", len(seen), want)
		}
		return nil
	})
	t.Logf("%d events are delivered in their order, and %d of them again", len(seen), repeated)
	// A request of the append that was killed, and what the sink had not confirmed.
	if most := 2 * 512 * movedBatch; len(seen) != want || repeated > most {
		t.Errorf("%d events are delivered of %d, and %d of them again, of at most %d", len(seen), want, repeated, most)
	}
}
