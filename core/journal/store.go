package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal/checkpoint"
	"github.com/guidonhq/guidon/core/journal/clock"
	"github.com/guidonhq/guidon/core/journal/expiry"
	"github.com/guidonhq/guidon/core/journal/files"
	"github.com/guidonhq/guidon/core/journal/incident"
	"github.com/guidonhq/guidon/core/journal/mark"
)

// store is the journal of a single node: one SQLite file in WAL mode with
// synchronous=FULL, one goroutine that writes, a pool of connections that read
// without waiting for it.
//
// It has more fields and methods than other types: it owns every part of the
// journal (queue, index, tail, health, wal) and their lifetimes, and implements
// the nine methods of Journal, each in the file of its topic.
type store struct {
	cfg    Config
	path   string
	id     string
	log    *zap.Logger
	hooks  hooks
	lock   *files.FileLock
	file   *os.File // synced and compared with the path; closed last, because closing drops SQLite locks
	writes *sql.DB  // the writer's connection, and a second one to fold the log
	reads  *sql.DB

	blocksFrom *sql.Stmt // on reads
	oldest     *sql.Stmt

	queue     *queue
	clock     *clock.Clock
	index     index
	tail      tail
	broadcast broadcast
	health    health
	wal       *checkpoint.Log
	metrics   *metrics
	damage    ledger
	mark      *mark.File
	incidents incident.File
	skipped   sync.Map   // number of a record by reader, see Skipped
	previous  *mark.Mark // of another journal in this directory, which is lost; else nil

	trimming sync.Mutex    // one round of retention at a time
	bounds   expiry.Bounds // of retention
	right    expiry.Block  // behind blocks whose stamps are ahead; guarded by trimming

	stopWorkers context.CancelFunc // ends the goroutines that look after things
	workers     sync.WaitGroup     // those goroutines
	written     chan struct{}      // closed when the writer has ended

	life      sync.RWMutex // read-locked while the file is in use
	closed    bool         // guarded by life
	closing   chan struct{}
	closeOnce sync.Once
	done      chan struct{} // closed when everything is let go of
	closeErr  error         // set before gone is closed
}

var _ Journal = (*store)(nil)

// hooks replace the disk and the clock in tests; nil uses the real ones.
type hooks struct {
	Clock        clock.Source
	Space        spaceFunc
	Link         func(*sql.Conn) // a fresh connection for writing
	BeforeCommit func(appends int) error
	Sync         func() error // of the main file
}

func (j *store) start() {
	ctx, cancel := context.WithCancel(context.Background())
	j.stopWorkers = cancel
	go func() {
		defer close(j.written)
		w := writer{j: j}
		w.run()
	}()
	j.health.check() // refuse from the start rather than after the first interval
	j.workers.Go(func() { j.wal.Run(ctx) })
	j.workers.Go(func() { j.health.run(ctx, j.probe) })
	j.workers.Go(func() { j.runRetention(ctx) })
	j.workers.Go(func() {
		j.mark.Run(ctx, j.newest, j.Wait, func(err error) { j.log.Warn("journal mark not written", zap.Error(err)) })
	})
}

// newest returns the number of the newest durable record.
func (j *store) newest() uint64 { return j.index.span().last }

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
	begun := j.metrics.startTimer()
	err := j.queue.do(ctx, r)
	seq := r.seq
	r.release()
	if err != nil {
		return 0, j.metrics.refused(err)
	}
	j.metrics.appended(begun)
	return seq, nil
}

// submit queues a job for the writer and waits for its outcome.
func (j *store) submit(ctx context.Context, work job, lazy bool) error {
	r := requests.Get().(*request)
	defer r.release()
	r.job, r.lazy = &work, lazy
	return j.queue.do(ctx, r)
}

// probe makes a small write to test whether writing works again.
func (j *store) probe() error {
	wall := j.clock.Stamp(0)
	return j.submit(uninterrupted, job{apply: func(_ *group, l *writeConn) error { return exec(l.probe, wall) }}, false)
}

// Close ends the journal; see Journal.
func (j *store) Close(ctx context.Context) error {
	j.closeOnce.Do(func() {
		close(j.closing)
		j.queue.close()
		go j.shutDown()
	})
	select {
	case <-j.done:
		return j.closeErr
	case <-ctx.Done():
		return fmt.Errorf("close the journal: %w", ctx.Err())
	}
}

func (j *store) shutDown() {
	defer close(j.done)
	<-j.written
	j.stopWorkers()
	j.workers.Wait()
	j.metrics.unregister()
	j.life.Lock()
	defer j.life.Unlock()
	j.closed = true
	if j.wal.Lost() {
		// Closing would copy the log into the damaged file and remove it. The
		// next process finds the log and copies all of it again.
		j.closeErr = j.lock.Close()
		return
	}
	if err := j.mark.Close(j.newest()); err != nil {
		j.log.Warn("journal mark not written", zap.Error(err))
	}
	if _, err := j.writes.ExecContext(uninterrupted, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		j.log.Warn("write-ahead log checkpoint failed on close; the next start replays the log", zap.Error(err))
	}
	j.closeErr = j.closeFiles()
}

// closeFiles closes all open statements, pools and files, the lock last.
func (j *store) closeFiles() error {
	err := j.closeFile()
	if j.lock != nil {
		err = errors.Join(err, j.lock.Close())
	}
	return err
}

// closeFile closes the main file after its statements and pools.
func (j *store) closeFile() error {
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
	if j.file != nil {
		errs = append(errs, j.file.Close())
	}
	return errors.Join(errs...)
}
