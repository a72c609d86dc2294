package sqlite

import (
	"database/sql/driver"
	"sync/atomic"
	"time"

	sqlitedriver "modernc.org/sqlite"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/scan"
)

// leastWork is the time between two sleeps.
const leastWork = 500 * time.Microsecond

var (
	calls   atomic.Int64
	sleptAt atomic.Int64 // nanoseconds since started
	started = time.Now()
)

// Pauses returns how often db.SQLitePauseFunction was called in this process.
func Pauses() int64 { return calls.Load() }

// init registers the function that pauses a statement. It does not sleep within half a
// millisecond of a sleep, so that a query whose rows all call it is not much slower.
func init() {
	sqlitedriver.MustRegisterScalarFunction(db.SQLitePauseFunction, 0, func(*sqlitedriver.FunctionContext, []driver.Value) (driver.Value, error) {
		calls.Add(1)
		if last := sleptAt.Load(); time.Since(started)-time.Duration(last) >= leastWork {
			scan.Pause()
			sleptAt.Store(int64(time.Since(started)))
		}
		return int64(1), nil
	})
}
