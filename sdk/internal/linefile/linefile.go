// Package linefile appends whole lines to a file that several processes may have open.
//
// During an upgrade two processes of a plugin have the same file: the old one still
// appends while the new one opens it and removes a torn line. Without a lock the new
// one takes the first half of an append for a torn line and removes lines that the old
// one has confirmed. Each removal and each append therefore holds an exclusive lock of
// the file (flock). File systems and operating systems without such locks give no
// protection; a plugin there must be exclusive.
package linefile

import (
	"bytes"
	"errors"
	"os"
)

// Open opens or creates a file of lines for Append. It removes a torn line at the end.
// Other files than regular ones stay unchanged.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := locked(f, func() error { return removeTornLine(f) }); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Append removes a torn line that a killed process has left, and appends whole lines. If the lines cannot be written as a whole it removes the
// written part.
func Append(f *os.File, lines []byte) error {
	return locked(f, func() error {
		if err := removeTornLine(f); err != nil {
			return err
		}
		n, err := f.Write(lines)
		if err == nil || n == 0 {
			return err
		}
		if info, serr := f.Stat(); serr == nil && info.Mode().IsRegular() {
			err = errors.Join(err, f.Truncate(info.Size()-int64(n)))
		}
		return err
	})
}

// locked calls fn while this process alone changes the file.
func locked(f *os.File, fn func() error) error {
	unlock, err := lock(f)
	if err != nil {
		return err
	}
	return errors.Join(fn(), unlock())
}

// removeTornLine removes what follows the last newline of a regular file.
func removeTornLine(f *os.File) error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	end, err := endOfLines(f, info.Size())
	if err != nil || end == info.Size() {
		return err
	}
	return f.Truncate(end)
}

// endOfLines returns the position behind the last newline before size.
func endOfLines(f *os.File, size int64) (int64, error) {
	var last [1]byte
	if size > 0 {
		if _, err := f.ReadAt(last[:], size-1); err != nil || last[0] == '\n' {
			return size, err
		}
	}
	buf := make([]byte, min(size, 64<<10))
	for end := size; end > 0; {
		part := buf[:min(end, int64(len(buf)))]
		end -= int64(len(part))
		if _, err := f.ReadAt(part, end); err != nil {
			return 0, err
		}
		if at := bytes.LastIndexByte(part, '\n'); at >= 0 {
			return end + int64(at) + 1, nil
		}
	}
	return 0, nil
}
