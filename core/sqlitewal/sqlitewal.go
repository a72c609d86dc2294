// Package sqlitewal checks and repairs the write-ahead log of a SQLite file that
// no process has open.
//
// SQLite replays a log up to the first frame whose checksum does not fit, because
// it cannot tell a damaged frame from the torn end of a crash: one flipped bit
// silently discards every later commit. But the checksum of a frame begins with
// the one stored in the frame before, so each frame behind a damaged one can be
// verified, unless its header is lost, too. A transaction is synced before the next one begins: a frame behind a
// commit proves that this commit was durable.
//
// Check tells a torn end from damage. Repair corrects a flipped bit: the checksum
// is linear, so that the difference mostly names the place of the bit. A frame that
// cannot be corrected is either left out, with an older version of its page in
// its place, or ends the log there, as SQLite does.
//
// The format is https://sqlite.org/fileformat2.html#walformat.
package sqlitewal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const (
	headerBytes = 32
	frameBytes  = 24 // before the page
	magicLittle = 0x377f0682
	magicBig    = 0x377f0683
	version     = 3007000
)

// Report describes a write-ahead log.
type Report struct {
	// Frames is the number of frames up to the last intact one of this log.
	Frames int `json:"frames"`
	// Replayed is the number of frames that SQLite replays: up to the last commit
	// before the first damaged frame.
	Replayed int `json:"replayed"`
	// LostCommits is the number of durable commits behind them, which SQLite
	// discards; 0 for an intact log and for the torn end of a crash.
	LostCommits int `json:"lost_commits"`
	// Damaged lists the offsets of the damaged frames, 0 for the header.
	Damaged []int64 `json:"damaged_offsets"`
	// Corrected and Dropped count the damaged frames that Repair has corrected
	// and left out.
	Corrected int `json:"corrected"`
	Dropped   int `json:"dropped"`
}

// IsDamaged reports whether durable commits would be lost.
func (r Report) IsDamaged() bool { return r.LostCommits > 0 }

// log is a write-ahead log in memory.
type log struct {
	data  []byte
	order binary.ByteOrder // of the checksums
	page  int
	salts [8]byte
	seed  sum // of the first frame

	headerOK bool
	good     []bool // by frame
	last     int    // the last frame that is intact, -1 for none
}

// Check reads the log of a SQLite file, whose name ends in -wal, and reports
// what SQLite would replay. pageSize is that of the file. A log that is missing
// or empty is intact.
func Check(path string, pageSize int) (Report, error) {
	l, err := load(path, pageSize)
	if l == nil || err != nil {
		return Report{}, err
	}
	return l.report(), nil
}

// Repair corrects the log in memory and writes it to the path to, synced, if
// durable commits would be lost and if all damaged frames can be corrected, or
// dropDamaged allows to leave out the others. It returns the report of the log
// before the repair; written tells whether there is a file at to.
func Repair(path, to string, pageSize int, dropDamaged bool) (r Report, written bool, err error) {
	l, err := load(path, pageSize)
	if l == nil || err != nil {
		return Report{}, false, err
	}
	if r = l.report(); !r.IsDamaged() {
		return r, false, nil
	}
	out := l.repair(&r)
	if r.Dropped > 0 && !dropDamaged {
		return r, false, nil
	}
	return r, true, writeSynced(to, out)
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// load reads and verifies a log; nil if there is none.
func load(path string, pageSize int) (*log, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) < headerBytes+frameBytes+pageSize {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the write-ahead log: %w", err)
	}
	l := &log{data: data, page: pageSize, order: binary.LittleEndian, last: -1}
	if !l.readHeader() && !l.restoreHeader() {
		return nil, nil // nothing in it belongs together: SQLite ignores it
	}
	l.verify()
	return l, nil
}

// frame returns frame i with its header.
func (l *log) frame(i int) []byte {
	size := frameBytes + l.page
	return l.data[headerBytes+i*size : headerBytes+(i+1)*size]
}

func (l *log) frames() int { return (len(l.data) - headerBytes) / (frameBytes + l.page) }

// verify finds the frames that are intact: their checksum fits the one before, as
// it is stored, or as it is computed when the stored one is damaged.
func (l *log) verify() {
	n := l.frames()
	l.good = make([]bool, n)
	stored, computed := l.seed, l.seed
	for i := range n {
		f := l.frame(i)
		has := sumOf(f[16:])
		byStored, byComputed := frameSum(l.order, stored, f), frameSum(l.order, computed, f)
		l.good[i] = l.belongs(i) && (byStored == has || byComputed == has)
		if l.good[i] {
			l.last, computed = i, has
		} else {
			computed = byComputed
		}
		stored = has
	}
}

func commits(frame []byte) bool { return binary.BigEndian.Uint32(frame[4:]) != 0 }

// report counts what SQLite replays and what it discards.
func (l *log) report() Report {
	r := Report{Frames: l.last + 1}
	bad := !l.headerOK
	if bad {
		r.Damaged = append(r.Damaged, 0)
	}
	pending := false // a commit behind the damage, not proved by a later frame yet
	for i := 0; i <= l.last; i++ {
		if !l.good[i] {
			bad = true
			r.Damaged = append(r.Damaged, int64(headerBytes+i*(frameBytes+l.page)))
		}
		if pending {
			r.LostCommits++
			pending = false
		}
		switch commit := l.good[i] && commits(l.frame(i)); {
		case commit && bad:
			pending = true
		case commit:
			r.Replayed = i + 1
		}
	}
	if r.LostCommits > 0 && pending {
		r.LostCommits++
	}
	return r
}

// repair returns the log with its damaged frames corrected or left out, and all
// checksums computed again.
func (l *log) repair(r *Report) []byte {
	out := append([]byte(nil), l.data[:headerBytes]...)
	seed := sumAt(l.order, sum{}, out[:24])
	putSum(out[24:], seed)
	before := l.seed // of the frame at hand, as it was written
	for i := 0; i <= l.last; i++ {
		f := append([]byte(nil), l.frame(i)...)
		has := sumOf(f[16:])
		if !l.good[i] {
			written := frameSum(l.order, before, f)
			switch {
			case l.nextFits(i, written): // only the stored checksum or the salts are damaged
				has = written
				r.Corrected++
			case correct(l.order, f, written, has):
				r.Corrected++
			case i > 0 && !l.good[i-1] && l.belongs(i) && l.nextFits(i, has):
				// It cannot be verified, because the checksum before it is lost.
			default:
				before = has
				r.Dropped++
				continue
			}
		}
		before = has
		copy(f[8:], l.salts[:])
		seed = frameSum(l.order, seed, f)
		putSum(f[16:], seed)
		out = append(out, f...)
	}
	return out
}

// belongs reports whether frame i is one of this log by its salts.
func (l *log) belongs(i int) bool {
	f := l.frame(i)
	return [8]byte(f[8:16]) == l.salts && binary.BigEndian.Uint32(f) != 0
}

// nextFits reports whether s is the checksum of frame i with which the next frame
// was written.
func (l *log) nextFits(i int, s sum) bool {
	if i+1 >= l.frames() {
		return false
	}
	next := l.frame(i + 1)
	return frameSum(l.order, s, next) == sumOf(next[16:])
}
