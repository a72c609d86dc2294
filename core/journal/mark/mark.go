// Package mark keeps the number of the newest durable record of a journal in a
// file of its own, so that a start can tell whether the journal's file has lost
// records since.
//
// The file is written behind the appends and never ahead of them: it names only
// records that are durable. It is at most WriteInterval old after the process was
// killed, and at most SyncInterval plus the time of a sync after a power failure.
package mark

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"time"
)

// The delays of the file behind the appends.
const (
	WriteInterval = 50 * time.Millisecond
	SyncInterval  = time.Second
)

// Mark is the newest durable record of a journal.
type Mark struct {
	ID   string // of the journal
	Last uint64
}

// format is a line of constant length for numbers below 10^20, so that a write
// never leaves the end of a longer one.
const format = "guidon-journal %s %020d"

func (m Mark) line() string {
	text := fmt.Sprintf(format, m.ID, m.Last)
	return fmt.Sprintf("%s %08x\n", text, crc32.ChecksumIEEE([]byte(text)))
}

// ErrDamaged is the error of Read for a file that holds no mark.
var ErrDamaged = errors.New("the mark of the newest record is damaged")

// Read returns the mark in a file; false if there is no file.
func Read(path string) (m Mark, found bool, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	var sum string
	if _, err := fmt.Sscanf(string(content), "guidon-journal %s %d %s\n", &m.ID, &m.Last, &sum); err != nil || string(content) != m.line() {
		return Mark{}, false, ErrDamaged
	}
	return m, true, nil
}

// File writes a mark. It is for one goroutine.
type File struct {
	f       *os.File
	id      string
	written uint64
	synced  time.Time
	dirty   bool
}

// Open opens the file for the journal of that id, and creates it if it is missing.
func Open(path, id string) (*File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &File{f: f, id: id}, nil
}

// Write writes the number of the newest durable record if it has changed. It syncs
// the file if sync is true or the last sync is SyncInterval ago.
func (f *File) Write(last uint64, sync bool) error {
	if last != f.written || f.synced.IsZero() {
		line := Mark{f.id, last}.line()
		if _, err := f.f.WriteAt([]byte(line), 0); err != nil {
			return err
		}
		if err := f.f.Truncate(int64(len(line))); err != nil {
			return err
		}
		f.written, f.dirty = last, true
	}
	if !f.dirty || !sync && time.Since(f.synced) < SyncInterval {
		return nil
	}
	if err := f.f.Sync(); err != nil {
		return err
	}
	f.synced, f.dirty = time.Now(), false
	return nil
}

// Run writes the number that newest returns until ctx ends. While the file is
// current it waits in wait, which returns when newest is above its argument. It
// reports the first failure of a series to failed.
func (f *File) Run(ctx context.Context, newest func() uint64, wait func(ctx context.Context, after uint64) error, failed func(error)) {
	tick := time.NewTicker(WriteInterval)
	defer tick.Stop()
	failing := false
	for {
		if !f.dirty && !failing && !f.synced.IsZero() {
			_ = wait(ctx, f.written) // an error is no number: the next write is due anyway
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := f.Write(newest(), false)
		if err != nil && !failing {
			failed(err)
		}
		failing = err != nil
	}
}

// Close syncs and closes the file.
func (f *File) Close(last uint64) error {
	return errors.Join(f.Write(last, true), f.f.Close())
}
