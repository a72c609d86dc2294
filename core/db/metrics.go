package db

import (
	"context"
	"database/sql"
	"encoding/binary"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/core/db/pools"
)

// The kinds of statements in guidon_database_query_seconds.
const (
	kindQuery = iota
	kindExec
	kindCommit
	kinds
)

var kindNames = [kinds]string{"query", "exec", "commit"}

// queryTimes observes the durations of the statements of one pool. Nil observes
// nothing.
type queryTimes struct{ byKind [kinds]prometheus.Observer }

// newQuerySeconds returns the histogram of all pools. Commits of SQLite contain the
// fsync and the checkpoints of the write-ahead log.
func newQuerySeconds() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "guidon_database_query_seconds",
		Help:    "Duration of statements until their last row is read, by pool and kind.",
		Buckets: prometheus.ExponentialBuckets(25e-6, 4, 10),
	}, []string{"pool", "kind"})
}

// timesOf returns the observers of a pool. A pool that only reads has no others than
// that of queries.
func timesOf(h *prometheus.HistogramVec, pool string, writes bool) *queryTimes {
	t := &queryTimes{}
	for kind, name := range kindNames {
		if writes || kind == kindQuery {
			t.byKind[kind] = h.WithLabelValues(pool, name)
		}
	}
	return t
}

// observe records a statement that began at begin.
func (t *queryTimes) observe(kind int, begin time.Time) {
	if t != nil && t.byKind[kind] != nil {
		t.byKind[kind].Observe(time.Since(begin).Seconds())
	}
}

// pgTracer measures the statements of PostgreSQL. It implements pgx.QueryTracer and
// pgx.CopyFromTracer.
type pgTracer struct{ times *queryTimes }

// pgStart is the begin of a statement, in its context.
type pgStart struct {
	at   time.Time
	kind int
}

type pgStartKey struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (t *pgTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, pgStartKey{}, pgStart{time.Now(), kindOf(data.SQL)})
}

// TraceQueryEnd implements pgx.QueryTracer.
func (t *pgTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	t.end(ctx)
}

// TraceCopyFromStart implements pgx.CopyFromTracer.
func (t *pgTracer) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return context.WithValue(ctx, pgStartKey{}, pgStart{time.Now(), kindExec})
}

// TraceCopyFromEnd implements pgx.CopyFromTracer.
func (t *pgTracer) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromEndData) {
	t.end(ctx)
}

func (t *pgTracer) end(ctx context.Context) {
	if s, ok := ctx.Value(pgStartKey{}).(pgStart); ok {
		t.times.observe(s.kind, s.at)
	}
}

// kindOf returns the kind of a statement by its first word.
func kindOf(query string) int {
	query = strings.TrimLeft(query, " \t\n")
	word := query[:min(len(query), 6)]
	switch {
	case strings.EqualFold(word, "select"), strings.HasPrefix(strings.ToLower(word), "with"):
		return kindQuery
	case strings.EqualFold(word, "commit"):
		return kindCommit
	}
	return kindExec
}

// collector reports the pools and the files at a scrape.
type collector struct{ d *DB }

var (
	connectionsDesc = databaseDesc("connections", "Open connections, by pool and state.", "pool", "state")
	maxDesc         = databaseDesc("connections_max", "Most connections of a pool.", "pool")
	waitsDesc       = databaseDesc("connection_waits_total", "Statements and transactions that waited for a connection.", "pool")
	waitedDesc      = databaseDesc("connection_wait_seconds_total", "Time that statements and transactions waited for a connection.", "pool")
	writersDesc     = databaseDesc("write_transactions_waiting", "Transactions that wait for the writing connection.")
	fileDesc        = databaseDesc("file_bytes", "Size of the SQLite file.")
	walDesc         = databaseDesc("wal_bytes", "Size of the write-ahead log of the SQLite file.")
	restartsDesc    = databaseDesc("wal_restarts_total", "Times that a checkpoint had moved the whole write-ahead log into the SQLite file and the log began anew.")
)

func databaseDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("guidon_database_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{connectionsDesc, maxDesc, waitsDesc, waitedDesc, writersDesc, fileDesc, walDesc, restartsDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ch <- gauge(writersDesc, float64(c.d.beginning.Load()))
	if c.d.pool != nil {
		collectPool(ch, "postgres", pgStats(c.d.pool))
		for kind, pool := range c.d.others {
			collectPool(ch, kind.String(), pgStats(pool))
		}
		return
	}
	for kind, r := range c.d.readers {
		collectPool(ch, pools.Kind(kind).String(), r.Stats())
	}
	collectPool(ch, "lookup", c.d.lookup.Stats())
	collectPool(ch, "write", c.d.write.Stats())
	ch <- gauge(fileDesc, fileSize(c.d.file))
	ch <- gauge(walDesc, fileSize(c.d.file+"-wal"))
	if n, ok := walRestarts(c.d.file + "-wal"); ok {
		ch <- counter(restartsDesc, n)
	}
}

func pgStats(pool *pgxpool.Pool) sql.DBStats {
	s := pool.Stat()
	return sql.DBStats{
		MaxOpenConnections: int(s.MaxConns()), InUse: int(s.AcquiredConns()), Idle: int(s.IdleConns()),
		WaitCount: s.EmptyAcquireCount(), WaitDuration: s.EmptyAcquireWaitTime(),
	}
}

func collectPool(ch chan<- prometheus.Metric, pool string, s sql.DBStats) {
	ch <- gauge(connectionsDesc, float64(s.InUse), pool, "in_use")
	ch <- gauge(connectionsDesc, float64(s.Idle), pool, "idle")
	ch <- gauge(maxDesc, float64(s.MaxOpenConnections), pool)
	ch <- counter(waitsDesc, float64(s.WaitCount), pool)
	ch <- counter(waitedDesc, s.WaitDuration.Seconds(), pool)
}

func gauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func counter(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

// fileSize returns the size of a file, 0 without one.
func fileSize(path string) float64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return float64(info.Size())
}

// walRestarts returns the sequence number in the header of a write-ahead log. Opening
// the log is safe: SQLite holds its locks on other files, which a close would release.
func walRestarts(path string) (float64, bool) {
	f, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer func() { _ = f.Close() }()
	var header [16]byte
	if _, err := f.ReadAt(header[:], 0); err != nil {
		return 0, false
	}
	return float64(binary.BigEndian.Uint32(header[12:])), true
}
