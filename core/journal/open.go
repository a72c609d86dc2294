package journal

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

const (
	fileName      = "journal.db"
	readConns     = 8
	writeCacheKiB = 8 << 10
	readCacheKiB  = 256
)

// Open opens the journal in cfg.Dir, or in the directory "journal" of dataDir,
// and creates it if it is missing. It fails with the path in the message when
// another process has it open, or when the file is not a journal this version
// can read. A nil reg means no metrics.
func Open(cfg Config, dataDir string, log *zap.Logger, reg prometheus.Registerer) (Journal, error) {
	j, err := open(cfg, dataDir, log, reg, hooks{})
	if err != nil {
		return nil, err
	}
	return j, nil
}

func open(cfg Config, dataDir string, log *zap.Logger, reg prometheus.Registerer, h hooks) (*store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	dir, err := cfg.path(dataDir)
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	j := &store{
		cfg: cfg, path: filepath.Join(dir, fileName), log: log.Named("journal"), hooks: h,
		queue: newQueue(cfg.MaxQueueRecords, cfg.MaxQueueBytes), clock: NewClock(h.Clock), tail: tail{limit: cfg.TailBytes},
		written: make(chan struct{}), closing: make(chan struct{}), done: make(chan struct{}),
	}
	j.wal = newWAL(j.log)
	if err := j.openFiles(dir); err != nil {
		_ = j.closeFiles()
		return nil, fmt.Errorf("open the journal %s: %w", j.path, err)
	}
	if j.metrics, err = newMetrics(j, reg); err != nil {
		_ = j.closeFiles()
		return nil, fmt.Errorf("open the journal %s: %w", j.path, err)
	}
	j.start()
	return j, nil
}

func (j *store) openFiles(dir string) (err error) {
	if err := makeDir(dir); err != nil {
		return err
	}
	if j.lock, err = lockFile(filepath.Join(dir, "lock")); err != nil {
		return err
	}
	if err := prepareFile(uninterrupted, j.path); err != nil {
		return err
	}
	if j.file, err = os.OpenFile(j.path, os.O_RDWR, 0); err != nil {
		return err
	}
	j.wal.sync, j.wal.onSyncFailure = j.file.Sync, j.health.markFailed
	if j.hooks.Sync != nil {
		j.wal.sync = j.hooks.Sync
	}
	if err := j.openPools(); err != nil {
		return err
	}
	if err := j.load(); err != nil {
		return err
	}
	j.health = health{cfg: j.cfg, path: j.path, file: j.file, space: j.hooks.Space, index: &j.index, log: j.log}
	if j.health.space == nil {
		j.health.space = diskSpace
	}
	return nil
}

// makeDir creates the directory and syncs its parent, so that it survives a power
// failure.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range []string{dir, filepath.Dir(dir)} {
		f, err := os.Open(d)
		if err != nil {
			return err
		}
		err = f.Sync()
		_ = f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *store) openPools() (err error) {
	if j.writes, err = sql.Open("sqlite", dsn(j.path, writeCacheKiB)); err != nil {
		return err
	}
	j.writes.SetMaxIdleConns(0) // a connection that is given back is thrown away
	if j.reads, err = sql.Open("sqlite", dsn(j.path, readCacheKiB, "query_only(1)")); err != nil {
		return err
	}
	j.reads.SetMaxOpenConns(readConns)
	j.reads.SetMaxIdleConns(readConns)
	if j.blocksFrom, err = j.reads.PrepareContext(uninterrupted, blocksFromSQL); err != nil {
		return err
	}
	j.oldest, err = j.reads.PrepareContext(uninterrupted, oldestSQL)
	return err
}

// extentSQL describes the oldest and the newest block.
const extentSQL = `
	SELECT o.seq, o.at, o.pos, n.seq + n.n - 1, n.at, n.pos + n.size
	FROM blocks o, blocks n
	WHERE o.seq = (SELECT min(seq) FROM blocks) AND n.seq = (SELECT max(seq) FROM blocks)`

// load reads the state of the file into the index.
func (j *store) load() error {
	var next, pos int64
	err := j.reads.QueryRowContext(uninterrupted, "SELECT id, next_seq, next_pos FROM head").Scan(&j.id, &next, &pos)
	if err != nil {
		return err
	}
	e := extent{first: uint64(next), last: uint64(next) - 1, firstPos: pos, endPos: pos}
	var seq, last int64
	err = j.reads.QueryRowContext(uninterrupted, extentSQL).Scan(&seq, &e.firstAt, &e.firstPos, &last, &e.lastAt, &e.endPos)
	switch {
	case err == nil:
		e.first, e.last = uint64(seq), uint64(last)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	var free int64
	if err := j.reads.QueryRowContext(uninterrupted, "PRAGMA freelist_count").Scan(&free); err != nil {
		return err
	}
	j.index.extent, j.index.free = e, free*pageBytes
	j.index.readers, err = j.loadReaders()
	return err
}

func (j *store) loadReaders() (readers, error) {
	rows, err := j.reads.QueryContext(uninterrupted, "SELECT name, seq, idx, count, dropped FROM readers")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	out := readers{}
	for rows.Next() {
		var name string
		var seq, count int64
		var c cursor
		if err := rows.Scan(&name, &seq, &c.position.Index, &count, &c.dropped); err != nil {
			return nil, err
		}
		c.position.Seq, c.position.Count = uint64(seq), uint64(count)
		out[name] = c
	}
	return out, rows.Err()
}
