// Package dbclock is the clock of the database, which all nodes share.
//
// The clocks of two machines may differ by minutes. Nodes that share one Postgres
// compare times only as Postgres has them. A Clock reads that time now and then and
// goes on with the monotonic clock of the machine, so that a jump of the machine's
// clock changes nothing. Its error is at most half of the duration of the read, plus
// the drift since. On SQLite it is the clock of the machine.
package dbclock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/guidonhq/guidon/core/db"
)

// maxAge is the age at which Sync reads the time again.
const maxAge = 10 * time.Second

// maxRead is how long a reading may take to replace another one.
const maxRead = time.Second

// Clock is the clock of a database. Its methods may be called concurrently.
type Clock struct {
	store store
	read  atomic.Pointer[reading]
	asked atomic.Pointer[time.Time] // when the last reading came that took too long; nil for none
}

// reading is a time of the database and of the machine at one moment.
type reading struct{ database, machine time.Time }

// New returns the clock of d. Until Sync has succeeded it is that of the machine.
func New(d *db.DB) *Clock { return &Clock{store: store{d}} }

// Now returns the time in UTC.
func (c *Clock) Now() time.Time {
	if r := c.read.Load(); r != nil {
		return r.database.Add(time.Since(r.machine))
	}
	return time.Now().UTC()
}

// Ahead returns by how much the clock of the machine is ahead of that of the database,
// negative if it is behind. It is 0 until Sync has succeeded.
func (c *Clock) Ahead() time.Duration {
	if c.read.Load() == nil {
		return 0
	}
	return time.Now().Round(0).Sub(c.Now().Round(0)) // by the clocks that can be wrong
}

// Sync reads the time of the database if the last reading is older than ten seconds. A
// reading that took more than a second is not used if there is another one, and the next
// one follows after ten seconds, too. On SQLite it does nothing.
func (c *Clock) Sync(ctx context.Context) error {
	if !c.store.db.Postgres() || !c.isDue() {
		return nil
	}
	begin := time.Now()
	at, err := c.store.now(ctx)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	if took > maxRead && c.read.Load() != nil {
		now := time.Now()
		c.asked.Store(&now)
		return nil // less exact than the reading before: the process was stopped, or the database
	}
	c.read.Store(&reading{database: at.Add(took / 2), machine: begin.Add(took)})
	return nil
}

// isDue reports whether the time is to be read again.
func (c *Clock) isDue() bool {
	r := c.read.Load()
	if r == nil {
		return true
	}
	asked := c.asked.Load()
	return time.Since(r.machine) >= maxAge && (asked == nil || time.Since(*asked) >= maxAge)
}
