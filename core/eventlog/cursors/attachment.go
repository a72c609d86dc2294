package cursors

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/retry"
)

const (
	// lookInterval is the pause between two looks at the log of the database, lookTimeout
	// bounds one.
	lookInterval = time.Second
	lookTimeout  = 2 * time.Second
	// awayAfter is how long Watch may not run before Check asks the database itself. It is
	// less than the age at which a node no longer keeps others from replacing the log
	// (cluster.ReplaceLog).
	awayAfter = 5 * time.Second
)

var (
	errReplaced = fault.New(fault.Unavailable, "log_replaced",
		"The servers of this database use another log, or this one with other partitions. Restart this server.").After(10 * time.Second)
	errUnconfirmed = fault.New(fault.Unavailable, "log_unconfirmed",
		"The server was stopped for a while and cannot ask the database whether its log is still used.").After(2 * time.Second)
)

// Attachment checks that the database still uses this log with this number of partitions. A
// process that was suspended (SIGSTOP, a paused machine) may resume after another node
// replaced the log; without the check it appends to partitions that other nodes do not read.
type Attachment struct {
	store      *Store
	id         string
	partitions int
	log        *zap.Logger

	began    time.Time
	awake    atomic.Int64 // when Watch ran last, in nanoseconds since began
	replaced atomic.Bool
	looking  sync.Mutex
	failed   time.Time // when a look failed last; with looking
}

// Attachment returns the attachment of a log that Attach has recorded.
func (s *Store) Attachment(id string, partitions int, log *zap.Logger) *Attachment {
	return &Attachment{store: s, id: id, partitions: partitions, log: log, began: time.Now()}
}

// Watch looks at the log of the database each second until ctx ends.
func (a *Attachment) Watch(ctx context.Context) {
	for retry.Sleep(ctx, lookInterval) {
		if now := time.Now(); !a.away(now) { // the database may be away, the process was not
			a.recordRun(now)
		}
		a.looking.Lock()
		_ = a.readLog(ctx)
		a.looking.Unlock()
	}
}

// Check returns nil while the log may be appended to at the time now. It asks the database
// only if the process was stopped for a while; otherwise it costs two loads.
func (a *Attachment) Check(now time.Time) error {
	if a.away(now) {
		if err := a.confirm(now); err != nil {
			return err
		}
	}
	return a.Err()
}

// Err returns the reason why the log is unusable, or nil.
func (a *Attachment) Err() error {
	if a.replaced.Load() {
		return errReplaced
	}
	return nil
}

func (a *Attachment) recordRun(now time.Time) { a.awake.Store(int64(now.Sub(a.began))) }
func (a *Attachment) away(now time.Time) bool {
	return int64(now.Sub(a.began))-a.awake.Load() > int64(awayAfter)
}

// confirm looks after the process was away. Of many callers one asks.
func (a *Attachment) confirm(now time.Time) error {
	a.looking.Lock()
	defer a.looking.Unlock()
	switch {
	case !a.away(now): // another caller has asked
		return nil
	case !a.failed.IsZero() && time.Since(a.failed) < lookInterval:
		return errUnconfirmed
	}
	if err := a.readLog(context.Background()); err != nil {
		return errUnconfirmed.Because(err)
	}
	return nil
}

// readLog reads the log of the database. It is called with looking.
func (a *Attachment) readLog(ctx context.Context) error {
	asked := time.Now() // a process that is stopped during the look was away again
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := a.store.store.log(ctx)
	if err != nil {
		a.failed = time.Now()
		return err
	}
	replaced := found.ID != a.id || found.Partitions != a.partitions
	if a.replaced.Swap(replaced) != replaced {
		fields := []zap.Field{zap.String("log", found.ID), zap.Int("partitions", found.Partitions), zap.String("own", a.id), zap.Int("own_partitions", a.partitions)}
		if replaced {
			a.log.Error("log replaced: appends refused until restart", fields...)
		} else {
			a.log.Info("log reattached: appends resumed", fields...)
		}
	}
	a.recordRun(asked)
	return nil
}
