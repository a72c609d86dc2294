package format_test

import (
	"errors"
	"hash/crc32"
	"testing"

	"github.com/guidonhq/guidon/core/journal/format"
)

// A damaged row may have any form, also one that no version writes, or a value of
// another type: both are damage, so that readers move over the block.
func TestDamagedRow(t *testing.T) {
	t.Parallel()
	stored := []byte("data")
	_, err := format.Unpack(64, crc32.Checksum(stored, crc32.MakeTable(crc32.Castagnoli)), nil, stored)
	if !format.IsDamage(err) {
		t.Errorf("an unknown form: %v", err)
	}
	err = errors.New(`sql: Scan error on column index 0, name "id": converting NULL to string is unsupported`)
	if !format.IsDamage(format.ScanError(err)) {
		t.Error("a value of another type is no damage")
	}
	if closed := errors.New("sql: database is closed"); format.IsDamage(format.ScanError(closed)) {
		t.Error("a closed file is damage")
	}
	if format.ScanError(nil) != nil {
		t.Error("no error is an error")
	}
}
