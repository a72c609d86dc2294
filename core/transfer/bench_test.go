package transfer

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// BenchmarkTransfer copies and compares a number of events, by default 100,000, of 20,000
// persons. GUIDON_TRANSFER_EVENTS sets the number. The time of PostgreSQL is that of the
// processes on this machine.
func BenchmarkTransfer(b *testing.B) {
	n := 100_000
	if set, err := strconv.Atoi(os.Getenv("GUIDON_TRANSFER_EVENTS")); err == nil {
		n = set
	}
	i := newInstallation(b, 0)
	i.storeEvents(b, n)
	i.fillPersons(b, 20_000)
	for b.Loop() {
		i.config.To.URL = dbtest.PostgresURL(b)
		watch := openTo(b, i)
		stages := map[string]time.Duration{}
		stage, since := "", time.Now()
		user, backend := processorTime(), postgresTime(b, watch)
		r, err := Run(b.Context(), i.config, Options{Progress: func(p Progress) {
			if p.Stage != stage {
				stages[stage] += time.Since(since)
				stage, since = p.Stage, time.Now()
			}
		}})
		if err != nil || r.Complete {
			b.Fatalf("complete before %t: %v", r.Complete, err)
		}
		stages[stage] += time.Since(since)
		b.ReportMetric(float64(n)/r.Took.Seconds(), "events/s")
		b.ReportMetric(float64((processorTime()-user).Microseconds())/float64(n), "µs-CPU/event")
		b.ReportMetric(float64((postgresTime(b, watch)-backend).Microseconds())/float64(n), "µs-CPU-postgres/event")
		b.ReportMetric(float64(r.Bytes)/float64(n), "B/event")
		for name, took := range stages {
			if name != "" {
				b.ReportMetric(took.Seconds(), name+"-s")
			}
		}
	}
}

// fillPersons inserts persons with one distinct id each.
func (i *installation) fillPersons(tb testing.TB, n int) {
	tb.Helper()
	for _, query := range []string{
		`INSERT INTO persons (id, project_id, uuid, created_at, updated_at, properties) WITH RECURSIVE n (i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			SELECT i, 2, 'person ' || i, i, i, '{"email":"someone' || i || '@example.com","plan":"free"}' FROM n`,
		`INSERT INTO person_distinct_ids SELECT 2, 'id ' || id, id, 1 FROM persons WHERE id BETWEEN 1000 AND %d`,
	} {
		if _, err := i.source.Write(tb.Context()).ExecContext(tb.Context(), fmt.Sprintf(query, 999+n)); err != nil {
			tb.Fatal(err)
		}
	}
}

// processorTime is the processor time of this process.
func processorTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// postgresTime is the processor time of the processes of the server that have ended, 0 if
// it is on another machine.
func postgresTime(tb testing.TB, d *db.DB) time.Duration {
	tb.Helper()
	var pid int
	if err := d.Pool().QueryRow(tb.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		tb.Fatal(err)
	}
	parent := statFields(pid)
	if len(parent) < 2 {
		return 0
	}
	postmaster, _ := strconv.Atoi(parent[1])
	fields := statFields(postmaster)
	if len(fields) < 15 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[13], 10, 64) // cutime
	system, _ := strconv.ParseInt(fields[14], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond // ticks are 1/100 s on Linux
}

// statFields returns the fields of /proc/PID/stat behind the name; the first is the state.
func statFields(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}
