package kafka

import "time"

// CloseIdleTails closes the tails that were not read for a while.
func (l *Log) CloseIdleTails(idle time.Duration) { l.closeIdleTails(idle) }

// CheckPartitions logs when the topic has got more partitions.
func (l *Log) CheckPartitions() { l.checkPartitions(l.ctx) }

// TailBytes is what the tail of a partition holds.
func (l *Log) TailBytes(partition int) int {
	p := l.partitions[partition]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tail.Bytes
}

// AheadBytes is what direct fetches of a partition have left in memory.
func (l *Log) AheadBytes(partition int) (bytes int) {
	p := l.partitions[partition]
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.ahead {
		bytes += c.Bytes
	}
	return bytes
}
