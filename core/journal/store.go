package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"

	"go.uber.org/zap"
)

// store is the journal of a single node: one SQLite file in WAL mode with
// synchronous=FULL, one goroutine that writes, a pool of connections that read
// without ever waiting for it.
type store struct {
	cfg    Config
	path   string
	id     string
	log    *zap.Logger
	hooks  hooks
	lock   *os.File
	file   *os.File // to sync and to recognise it; closing it would drop SQLite's locks, so it is closed last
	writes *sql.DB  // the writer's connection, and a second one to fold the log
	reads  *sql.DB

	blocksFrom *sql.Stmt // on reads
	oldest     *sql.Stmt

	queue   *queue
	clock   *Clock
	ledger  ledger
	tail    tail
	bell    bell
	health  health
	wal     *wal
	metrics *metrics

	trimming sync.Mutex // one round of retention at a time

	background context.CancelFunc // ends the goroutines that look after things
	tending    sync.WaitGroup     // those goroutines
	written    chan struct{}      // closed when the writer has ended

	life      sync.RWMutex // held for reading while the file is in use
	closed    bool         // guarded by life
	closing   chan struct{}
	closeOnce sync.Once
	gone      chan struct{} // closed when everything is let go of
	closeErr  error         // set before gone is closed
}

var _ Journal = (*store)(nil)

// hooks let tests stand in for the disk and the clock; nil is the real thing.
type hooks struct {
	Clock        clockFunc
	Space        spaceFunc
	Link         func(*sql.Conn) // a fresh connection for writing
	BeforeCommit func(appends int) error
	Sync         func() error // of the main file
}

func (j *store) start() {
	ctx, cancel := context.WithCancel(context.Background())
	j.background = cancel
	go func() {
		defer close(j.written)
		w := writer{j: j}
		w.run()
	}()
	j.health.look() // refuse from the start rather than after the first interval
	j.tending.Go(func() { j.wal.run(ctx, j.writes) })
	j.tending.Go(func() { j.health.watch(ctx, j.probe) })
	j.tending.Go(func() { j.tend(ctx) })
}

// Append stores data as one record; see Journal.
func (j *store) Append(ctx context.Context, data []byte) (uint64, error) {
	if err := j.health.refusal(); err != nil {
		return 0, j.metrics.refused(err)
	}
	if len(data) > j.cfg.MaxRecordBytes {
		return 0, j.metrics.refused(errRecordTooLarge)
	}
	r := requests.Get().(*request)
	r.data = data
	begun := j.metrics.begin()
	err := j.queue.do(ctx, r)
	seq := r.seq
	r.release()
	if err != nil {
		return 0, j.metrics.refused(err)
	}
	j.metrics.appended(begun)
	return seq, nil
}

// submit has the writer do a job and waits for its outcome.
func (j *store) submit(ctx context.Context, work job, lazy bool) error {
	r := requests.Get().(*request)
	defer r.release()
	r.job, r.lazy = &work, lazy
	return j.queue.do(ctx, r)
}

// probe writes something small, to see whether writing works again.
func (j *store) probe() error {
	wall, _ := j.clock.now()
	return j.submit(always, job{apply: func(_ *group, l *link) error { return exec(l.probe, wall) }}, false)
}

// Close ends the journal; see Journal.
func (j *store) Close(ctx context.Context) error {
	j.closeOnce.Do(func() {
		close(j.closing)
		j.queue.close()
		go j.shut()
	})
	select {
	case <-j.gone:
		return j.closeErr
	case <-ctx.Done():
		return fmt.Errorf("close the journal: %w", ctx.Err())
	}
}

func (j *store) shut() {
	defer close(j.gone)
	<-j.written
	j.background()
	j.tending.Wait()
	j.metrics.unregister()
	j.life.Lock()
	defer j.life.Unlock()
	j.closed = true
	if j.wal.lost.Load() {
		// Closing would fold the log and remove it. Left as it is, the next
		// process finds it and copies all of it anew.
		j.closeErr = j.lock.Close()
		return
	}
	if _, err := j.writes.ExecContext(always, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		j.log.Warn("the write-ahead log stays; the next start reads it", zap.Error(err))
	}
	j.closeErr = j.letGo()
}

// letGo closes whatever is open, the lock last.
func (j *store) letGo() error {
	var errs []error
	for _, s := range []*sql.Stmt{j.blocksFrom, j.oldest} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	for _, db := range []*sql.DB{j.reads, j.writes} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	for _, f := range []*os.File{j.file, j.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
