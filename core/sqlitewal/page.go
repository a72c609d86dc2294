package sqlitewal

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// PageSize returns the size of a page of the SQLite file at path: by its header, else
// by that of its write-ahead log, else usual. Files that are missing or too short for a
// header have none. The process must not have the file open: closing it would drop the
// locks of SQLite.
func PageSize(path string, usual int) (int, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return PageSizeOf(strings.NewReader(""), path+"-wal", usual)
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	return PageSizeOf(f, path+"-wal", usual)
}

// PageSizeOf is PageSize for an open file and the path of its write-ahead log.
func PageSizeOf(file io.ReaderAt, log string, usual int) (int, error) {
	n, err := sizeAt(file, 16, 2)
	if n == 1 {
		n = 1 << 16
	}
	if err != nil || isPageSize(n) {
		return n, err
	}
	f, err := os.Open(log)
	if errors.Is(err, fs.ErrNotExist) {
		return usual, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	n, err = sizeAt(f, 8, 4)
	if err != nil || isPageSize(n) {
		return n, err
	}
	return usual, nil
}

func isPageSize(n int) bool { return n >= 512 && n <= 1<<16 && n&(n-1) == 0 }

// sizeAt reads a number of up to four bytes of a file; 0 if the file is too short.
func sizeAt(file io.ReaderAt, at int64, length int) (int, error) {
	var number [4]byte
	_, err := file.ReadAt(number[4-length:], at)
	if errors.Is(err, io.EOF) {
		return 0, nil
	}
	return int(binary.BigEndian.Uint32(number[:])), err
}
