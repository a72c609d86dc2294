package journal

import (
	"errors"
	"fmt"
	"time"
)

// Config holds the limits of the journal. Sizes are bytes of record data unless
// noted otherwise.
type Config struct {
	// Dir holds the files; empty means "journal" in the data directory. A disk
	// of its own is worth it when sinks write to the same one.
	Dir string `koanf:"dir"`

	// Records that every reader has done are kept until they are more than
	// MaxBytes together or older than MaxAge; 0 switches that bound off.
	// Both off keeps everything.
	MaxBytes int64         `koanf:"max_bytes" live:"true"`
	MaxAge   time.Duration `koanf:"max_age" live:"true"`

	// DropUnread lets retention remove records that a reader still needs.
	DropUnread bool `koanf:"drop_unread"`

	// LimitBytes refuses appends while the kept records, read or not, are about
	// this much; 0 leaves it to the free space.
	LimitBytes int64 `koanf:"limit_bytes"`

	// Appends are refused while the disk has less free space than the smaller
	// of MinFreeBytes and MinFreePercent of its size; 0 in either switches the
	// guard off.
	MinFreeBytes   int64   `koanf:"min_free_bytes"`
	MinFreePercent float64 `koanf:"min_free_percent"`

	// MaxRecordBytes is the largest record. MaxGroupBytes and MaxGroupRecords
	// bound what one fsync carries (one record always fits). MaxQueueBytes and
	// MaxQueueRecords bound what waits in memory for its turn; more is refused.
	MaxRecordBytes  int `koanf:"max_record_bytes"`
	MaxGroupBytes   int `koanf:"max_group_bytes"`
	MaxGroupRecords int `koanf:"max_group_records"`
	MaxQueueBytes   int `koanf:"max_queue_bytes"`
	MaxQueueRecords int `koanf:"max_queue_records"`

	// TailBytes of the newest records stay in memory, so that readers which
	// keep up need no disk; 0 reads everything from the file.
	TailBytes int `koanf:"tail_bytes"`

	// TrimInterval is the pause between two rounds of retention.
	TrimInterval time.Duration `koanf:"trim_interval"`
}

// DefaultConfig suits a small server: a day of history, at most 1 GiB of it,
// unread records kept until the disk is nearly full.
func DefaultConfig() Config {
	return Config{
		MaxBytes:        1 << 30,
		MaxAge:          24 * time.Hour,
		MinFreeBytes:    1 << 30,
		MinFreePercent:  5,
		MaxRecordBytes:  32 << 20,
		MaxGroupBytes:   4 << 20,
		MaxGroupRecords: 4096,
		MaxQueueBytes:   64 << 20,
		MaxQueueRecords: 16384,
		TailBytes:       8 << 20,
		TrimInterval:    time.Second,
	}
}

// MinFree returns the free bytes below which appends are refused on a disk of size
// bytes; 0 if the guard is off.
func (c Config) MinFree(size int64) int64 {
	return min(c.MinFreeBytes, int64(float64(size)*c.MinFreePercent/100))
}

// Validate reports every setting that cannot work, named by its key.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, key, must string) {
		if !ok {
			errs = append(errs, fmt.Errorf("journal.%s %s", key, must))
		}
	}
	check(c.MaxBytes >= 0, "max_bytes", "must not be negative (0 keeps any size)")
	check(c.MaxAge >= 0, "max_age", "must not be negative (0 keeps any age)")
	check(c.LimitBytes >= 0, "limit_bytes", "must not be negative (0 is no limit)")
	check(c.LimitBytes == 0 || c.LimitBytes > c.MaxBytes, "limit_bytes",
		"must be larger than max_bytes, or what retention keeps would already be too much")
	check(c.MinFreeBytes >= 0, "min_free_bytes", "must not be negative (0 switches the guard off)")
	check(c.MinFreePercent >= 0 && c.MinFreePercent < 100, "min_free_percent", "must be from 0 to below 100")
	check(c.MaxRecordBytes > 0 && c.MaxRecordBytes <= 512<<20, "max_record_bytes", "must be from 1 byte to 512 MiB")
	check(c.MaxGroupBytes > 0, "max_group_bytes", "must be positive")
	check(c.MaxGroupRecords > 0, "max_group_records", "must be positive")
	check(c.MaxQueueBytes > 0, "max_queue_bytes", "must be positive")
	check(c.MaxQueueRecords > 0, "max_queue_records", "must be positive")
	check(c.TailBytes >= 0, "tail_bytes", "must not be negative (0 reads everything from the file)")
	check(c.TrimInterval > 0, "trim_interval", "must be positive")
	return errors.Join(errs...)
}
