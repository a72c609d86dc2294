package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/guidonhq/guidon/core/db"
)

// scanPool implements db.SQLiteScanner: connections that only read, without database/sql,
// which copies every value of a row several times and so costs more than the query. It is
// safe for concurrent use.
type scanPool struct {
	file string
	busy time.Duration // for which a query waits for a lock

	mu     sync.Mutex
	idle   []*scanConn
	closed bool
}

// newScanPool returns the pool of a file. It opens connections when they are needed.
func newScanPool(file string, busy time.Duration) *scanPool { return &scanPool{file: file, busy: busy} }

// scanRow implements db.SQLiteRow.
type scanRow struct {
	conn *scanConn
	stmt uintptr
}

// Int returns an integer column, 0 for NULL.
func (r *scanRow) Int(column int) int64 { return r.conn.columnInt(r.stmt, column) }

// Bytes returns a column of text or bytes, nil for NULL. SQLite owns the memory: it is
// valid until the function of Scan returns and must not be changed.
func (r *scanRow) Bytes(column int) []byte { return r.conn.columnBytes(r.stmt, column) }

var errScanClosed = errors.New("the SQLite file is closed")

// Scan runs queries in one read transaction and calls fn for every row with the
// number of its query, until fn fails. It calls pause again and again while SQLite
// works, at intervals of about 0.1 ms, also between two rows. pause may sleep.
func (p *scanPool) Scan(ctx context.Context, queries []string, pause func(), fn func(int, db.SQLiteRow) error) error {
	c, err := p.take()
	if err != nil {
		return err
	}
	defer p.release(c) // also after a panic of fn
	defer c.callWhileWorking(pause)()
	err = c.interruptible(ctx, func() error { return c.inTransaction(ctx, queries, fn) })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (p *scanPool) take() (*scanConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errScanClosed
	}
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return c, nil
	}
	return openScanConn(p.file, p.busy)
}

// release keeps as many connections as there are cores, without their caches. It
// closes a connection whose transaction did not end: the interrupt of a canceled scan
// can end its ROLLBACK.
func (p *scanPool) release(c *scanConn) {
	sqlite3.Xsqlite3_db_release_memory(c.tls, c.db)
	inTransaction := sqlite3.Xsqlite3_get_autocommit(c.tls, c.db) == 0
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || inTransaction || len(p.idle) >= runtime.GOMAXPROCS(0) {
		c.close()
		return
	}
	p.idle = append(p.idle, c)
}

// Close closes the idle connections; the others are closed when they are released.
func (p *scanPool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		c.close()
	}
	p.idle = nil
}

// scanConn is a connection to a SQLite file that only reads. One goroutine uses it
// at a time.
type scanConn struct {
	tls *libc.TLS
	db  uintptr
}

func openScanConn(file string, busy time.Duration) (*scanConn, error) {
	c := &scanConn{tls: libc.NewTLS()}
	name, err := libc.CString("file:" + (&url.URL{Path: file}).EscapedPath())
	if err != nil {
		c.tls.Close()
		return nil, err
	}
	defer libc.Xfree(c.tls, name)
	handle := c.tls.Alloc(int(unsafe.Sizeof(c.db)))
	defer c.tls.Free(int(unsafe.Sizeof(c.db)))
	const flags = sqlite3.SQLITE_OPEN_READWRITE | sqlite3.SQLITE_OPEN_URI | sqlite3.SQLITE_OPEN_NOMUTEX
	code := sqlite3.Xsqlite3_open_v2(c.tls, name, handle, flags, 0)
	c.db = *(*uintptr)(pointer(handle))
	if code == sqlite3.SQLITE_OK {
		sqlite3.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
		sqlite3.Xsqlite3_busy_timeout(c.tls, c.db, int32(busy.Milliseconds()))
		err = c.exec("PRAGMA cache_size(-8192); PRAGMA temp_store(MEMORY); PRAGMA query_only(1)")
	} else {
		err = c.failure(code)
	}
	if err != nil {
		c.close()
		return nil, fmt.Errorf("open SQLite file %s for scans: %w", file, err)
	}
	return c, nil
}

func (c *scanConn) close() {
	sqlite3.Xsqlite3_close_v2(c.tls, c.db)
	c.tls.Close()
}

// interruptible calls fn and interrupts its running query when ctx ends. After it
// returns or panics, nothing interrupts the connection.
func (c *scanConn) interruptible(ctx context.Context, fn func() error) error {
	done := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(done)
		tls := libc.NewTLS()
		defer tls.Close()
		sqlite3.Xsqlite3_interrupt(tls, c.db)
	})
	defer func() {
		if !cancel() {
			<-done
		}
	}()
	return fn()
}

// stepsPerPause is how many steps of its program SQLite makes between two calls of a
// pause: a row of a scan takes 10 to 40.
const stepsPerPause = 2000

// pauses has the pause of each connection that works, by its address.
var pauses sync.Map

// callWhileWorking makes SQLite call pause until the function that it returns is called.
func (c *scanConn) callWhileWorking(pause func()) (end func()) {
	pauses.Store(c.db, pause)
	sqlite3.Xsqlite3_progress_handler(c.tls, c.db, stepsPerPause, callback(onProgress), c.db)
	return func() {
		sqlite3.Xsqlite3_progress_handler(c.tls, c.db, 0, 0, 0)
		pauses.Delete(c.db)
	}
}

// onProgress is called by SQLite. It returns 0 to continue.
func onProgress(_ *libc.TLS, db uintptr) int32 {
	if pause, ok := pauses.Load(db); ok {
		pause.(func())()
	}
	return 0
}

// callback returns a function as the C code of SQLite calls it.
func callback(f func(*libc.TLS, uintptr) int32) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

func (c *scanConn) exec(sql string) error {
	text, err := libc.CString(sql)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, text)
	if code := sqlite3.Xsqlite3_exec(c.tls, c.db, text, 0, 0, 0); code != sqlite3.SQLITE_OK {
		return c.failure(code)
	}
	return nil
}

func (c *scanConn) inTransaction(ctx context.Context, queries []string, fn func(int, db.SQLiteRow) error) (err error) {
	if err := c.exec("BEGIN"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.exec("ROLLBACK")) }()
	for i, query := range queries {
		if err := c.query(ctx, query, func(r *scanRow) error { return fn(i, r) }); err != nil {
			return err
		}
	}
	return nil
}

// rowsPerCheck is how many rows are read between two looks at the context: an
// interrupt between two statements has no effect.
const rowsPerCheck = 256

func (c *scanConn) query(ctx context.Context, query string, fn func(*scanRow) error) error {
	text, err := libc.CString(query)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, text)
	handle := c.tls.Alloc(int(unsafe.Sizeof(c.db)))
	defer c.tls.Free(int(unsafe.Sizeof(c.db)))
	if code := sqlite3.Xsqlite3_prepare_v2(c.tls, c.db, text, -1, handle, 0); code != sqlite3.SQLITE_OK {
		return c.failure(code)
	}
	row := scanRow{conn: c, stmt: *(*uintptr)(pointer(handle))}
	defer sqlite3.Xsqlite3_finalize(c.tls, row.stmt)
	for n := 0; ; n++ {
		if n%rowsPerCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		switch code := sqlite3.Xsqlite3_step(c.tls, row.stmt); code {
		case sqlite3.SQLITE_ROW:
			if err := fn(&row); err != nil {
				return err
			}
		case sqlite3.SQLITE_DONE:
			return nil
		default:
			return c.failure(code)
		}
	}
}

func (c *scanConn) columnInt(stmt uintptr, column int) int64 {
	return sqlite3.Xsqlite3_column_int64(c.tls, stmt, int32(column))
}

func (c *scanConn) columnBytes(stmt uintptr, column int) []byte {
	start := sqlite3.Xsqlite3_column_blob(c.tls, stmt, int32(column))
	size := sqlite3.Xsqlite3_column_bytes(c.tls, stmt, int32(column))
	switch {
	case start != 0:
		return unsafe.Slice((*byte)(pointer(start)), int(size))
	case sqlite3.Xsqlite3_column_type(c.tls, stmt, int32(column)) == sqlite3.SQLITE_NULL:
		return nil
	}
	return []byte{}
}

// pointer converts an address of the memory of SQLite, which the garbage collector
// does not move.
func pointer(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// scanError is an error of SQLite during a scan.
type scanError struct {
	code    int // the extended result code
	message string
}

// Error returns the message with the code.
func (e *scanError) Error() string { return fmt.Sprintf("%s (%d)", e.message, e.code) }

func (c *scanConn) failure(code int32) error {
	return &scanError{code: int(code), message: libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db))}
}
