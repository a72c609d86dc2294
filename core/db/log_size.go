package db

import "os"

// LogBytes returns the size of the write-ahead log of SQLite, 0 for PostgreSQL.
func (d *DB) LogBytes() int64 {
	if d.file == "" {
		return 0
	}
	info, err := os.Stat(d.file + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}
