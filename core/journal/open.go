package journal

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal/checkpoint"
	"github.com/guidonhq/guidon/core/journal/clock"
	"github.com/guidonhq/guidon/core/journal/files"
	"github.com/guidonhq/guidon/core/journal/format"
	"github.com/guidonhq/guidon/core/journal/incident"
)

const (
	readConns     = 8
	writeCacheKiB = 4 << 10
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

// ErrLocked is the error of a journal that a process has open.
var ErrLocked = files.ErrLocked

func open(cfg Config, dataDir string, log *zap.Logger, reg prometheus.Registerer, h hooks) (*store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	dir, err := cfg.Directory(dataDir)
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	j := &store{
		cfg: cfg, path: filepath.Join(dir, format.FileName), log: log.Named("journal"), hooks: h,
		queue: newQueue(cfg.MaxQueueRecords, cfg.MaxQueueBytes), clock: clock.New(h.Clock), tail: tail{limit: cfg.TailBytes},
		written: make(chan struct{}), closing: make(chan struct{}), done: make(chan struct{}),
	}
	j.setRetention(&cfg)
	j.wal = checkpoint.New(j.log, j.health.markFailed)
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
	if err := files.MakeDir(dir); err != nil {
		return err
	}
	if err := files.Secure(dir); err != nil {
		return err
	}
	if j.lock, err = files.Lock(filepath.Join(dir, "lock")); err != nil {
		return err
	}
	if err := j.finishReplace(); err != nil {
		return fmt.Errorf("complete the replacement of the file: %w", err)
	}
	if err := j.repairWAL(); err != nil {
		return fmt.Errorf("repair the write-ahead log: %w", err)
	}
	created := !hasFile(j.path)
	if err := files.Create(j.path); err != nil {
		return err
	}
	if err := format.Prepare(uninterrupted, j.path); err != nil {
		return damagedFile(err)
	}
	j.incidents = incident.File{Path: filepath.Join(dir, incident.FileName)}
	if err := j.openFile(); err != nil {
		return damagedFile(err)
	}
	if err := j.load(); err != nil {
		return damagedFile(format.ScanError(err))
	}
	if err := j.readMark(created); err != nil {
		return err
	}
	j.health.cfg, j.health.path, j.health.space, j.health.index, j.health.log = j.cfg, j.path, j.hooks.Space, &j.index, j.log
	if j.health.space == nil {
		j.health.space = files.Space
	}
	return nil
}

// openFile opens the main file and its pools.
func (j *store) openFile() (err error) {
	if j.file, err = os.OpenFile(j.path, os.O_RDWR, 0); err != nil {
		return err
	}
	j.health.file.Store(j.file)
	sync := j.file.Sync
	if j.hooks.Sync != nil {
		sync = j.hooks.Sync
	}
	j.wal.Use(nil, sync)
	if j.writes, err = sql.Open("sqlite", format.DSN(j.path, writeCacheKiB)); err != nil {
		return err
	}
	var page int64
	if err := j.writes.QueryRowContext(uninterrupted, "PRAGMA page_size").Scan(&page); err != nil {
		return err
	}
	j.wal.Use(j.writes, sync)
	j.wal.SetPage(page)
	j.writes.SetMaxIdleConns(0) // a connection that is given back is thrown away
	if j.reads, err = sql.Open("sqlite", format.DSN(j.path, readCacheKiB, "query_only(1)")); err != nil {
		return err
	}
	j.reads.SetMaxOpenConns(readConns)
	j.reads.SetMaxIdleConns(readConns)
	if j.blocksFrom, err = j.reads.PrepareContext(uninterrupted, format.BlocksFromSQL); err != nil {
		return err
	}
	j.oldest, err = j.reads.PrepareContext(uninterrupted, oldestSQL)
	return err
}

// oldestBlockSQL describes the oldest block.
const oldestBlockSQL = "SELECT seq, at, pos FROM blocks ORDER BY seq LIMIT 1"

// load reads the state of the file into the index. The numbers of damaged blocks
// are kept where they are plausible, so that no number is used again.
func (j *store) load() error {
	var next, pos int64
	err := j.reads.QueryRowContext(uninterrupted, "SELECT id, next_seq, next_pos FROM head").Scan(&j.id, &next, &pos)
	if err != nil {
		return err
	}
	if j.index.readers, err = j.loadReaders(); err != nil {
		return err
	}
	e := extent{first: uint64(next), last: uint64(next) - 1, firstPos: pos, endPos: pos}
	newest, claimed, found, err := format.Newest(uninterrupted, j.reads)
	switch {
	case err != nil:
		return err
	case found:
		e.last, e.lastAt, e.endPos = max(claimed, e.last), newest.At, newest.Pos+int64(newest.Payload())
		var seq int64
		err = j.reads.QueryRowContext(uninterrupted, oldestBlockSQL).Scan(&seq, &e.firstAt, &e.firstPos)
		if e.first = uint64(seq); err != nil || e.first > e.last { // the oldest block is damaged
			e.first, e.firstAt, e.firstPos = uint64(next), e.lastAt, e.endPos
		}
		e.first = j.index.readers.firstNeeded(e.first)
	}
	var free int64
	if err := j.reads.QueryRowContext(uninterrupted, "PRAGMA freelist_count").Scan(&free); err != nil {
		return err
	}
	j.index.extent, j.index.free = e, free*j.wal.PageBytes()
	return nil
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
