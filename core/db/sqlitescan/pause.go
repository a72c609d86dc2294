package sqlitescan

import (
	"database/sql/driver"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"github.com/guidonhq/guidon/core/db/scan"
)

// PauseFunction is the name of an SQL function of every connection of database/sql to
// SQLite: it pauses as scan.Pause does and returns 1. Statements that read many rows without
// returning them call it once in a while. It does not sleep within half a
// millisecond of a sleep, so that a query whose rows all call it is not much slower.
const PauseFunction = "guidon_pause"

// leastWork is the time between two sleeps.
const leastWork = 500 * time.Microsecond

var (
	calls   atomic.Int64
	sleptAt atomic.Int64 // nanoseconds since started
	started = time.Now()
)

// Pauses returns how often PauseFunction was called in this process.
func Pauses() int64 { return calls.Load() }

func init() {
	sqlite.MustRegisterScalarFunction(PauseFunction, 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		calls.Add(1)
		if last := sleptAt.Load(); time.Since(started)-time.Duration(last) >= leastWork {
			scan.Pause()
			sleptAt.Store(int64(time.Since(started)))
		}
		return int64(1), nil
	})
}
