package sdk

import (
	"bytes"
	"errors"
	"os"
)

// OpenLines opens or creates a file of lines for AppendLines. It removes what follows the
// last newline: a process that was killed while it wrote leaves such a torn line, and the
// next batch would continue it. Other files than regular ones stay unchanged.
func OpenLines(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		whole, buf := info.Size(), make([]byte, 64<<10)
		for whole > 0 {
			part := buf[:min(whole, int64(len(buf)))]
			if _, err = f.ReadAt(part, whole-int64(len(part))); err != nil {
				break
			}
			if end := bytes.LastIndexByte(part, '\n') + 1; end > 0 {
				whole -= int64(len(part) - end)
				break
			}
			whole -= int64(len(part))
		}
		if err == nil && whole < info.Size() {
			err = f.Truncate(whole)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// AppendLines appends whole lines, such as Batch.NDJSON. If they cannot be written as a
// whole it removes the written part.
func AppendLines(f *os.File, lines []byte) error {
	n, err := f.Write(lines)
	if err != nil && n > 0 {
		if info, serr := f.Stat(); serr == nil && info.Mode().IsRegular() {
			err = errors.Join(err, f.Truncate(info.Size()-int64(n)))
		}
	}
	return err
}
