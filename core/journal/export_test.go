package journal

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// WALBytes is where the write-ahead log begins anew.
const WALBytes = walBytes

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
	data, err := unpack(form, sum, stored)
	if err != nil {
		return nil, err
	}
	b := block{seq: 1, n: n, data: data}
	if err := b.check(); err != nil {
		return nil, err
	}
	p := selector{after: after, maxRecords: n, maxBytes: len(data)}
	p.add(b)
	return p.records(), nil
}

// Packed is how records are stored.
func Packed(records ...[]byte) (form int, sum uint32, stored []byte) {
	var p packer
	form, stored = p.pack(newBlock(1, 0, 0, records).data)
	return form, checksum(stored), stored
}
