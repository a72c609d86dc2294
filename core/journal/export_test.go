package journal

import (
	"context"
	"hash/crc32"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal/checkpoint"
	"github.com/guidonhq/guidon/core/journal/format"
)

// WALBytes is where the write-ahead log begins anew.
const WALBytes = checkpoint.LogBytes

// Hooks are what tests may stand in for.
type Hooks = hooks

// OpenHooked is Open with the world replaced where h says so.
func OpenHooked(cfg Config, dir string, log *zap.Logger, reg prometheus.Registerer, h Hooks) (Journal, error) {
	j, err := open(cfg, dir, log, reg, h)
	if err != nil {
		return nil, err
	}
	return j, nil
}

// Waiting is how many requests stand in line.
func Waiting(j Journal) int {
	q := j.(*store).queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Shrink is one round of giving space back to the disk.
func Shrink(j Journal) error { return j.(*store).shrink(context.Background()) }

// Unpacked checks what was stored and returns the records in it, as a read of
// everything after the number after would.
func Unpacked(n, form int, sum uint32, stored []byte, after uint64) ([]Record, error) {
	data, err := format.Unpack(form&^format.Headed, sum, nil, stored)
	if err != nil {
		return nil, err
	}
	b := format.Block{Seq: 1, N: n, Data: data}
	if err := b.Check(); err != nil {
		return nil, err
	}
	p := selector{after: after, maxRecords: n, maxBytes: len(data)}
	p.add(b)
	return p.records(), nil
}

// Packed is how records are stored.
func Packed(records ...[]byte) (form int, sum uint32, stored []byte) {
	var p format.Packer
	form, stored = p.Pack(format.NewBlock(1, 0, 0, records).Data)
	return form, crc32.Checksum(stored, crc32.MakeTable(crc32.Castagnoli)), stored
}
