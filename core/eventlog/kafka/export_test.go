package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

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

// KeepBatches decodes batches as a broker sends them for a fetch after a record, and
// returns the numbers of the records that are kept.
func KeepBatches(raw []byte, after uint64, end int64) (numbers []uint64, last uint64, err error) {
	l := &Log{target: &Target{Topic: "events"}, decompressor: kgo.DefaultDecompressor()}
	p := newPartition(l, 0)
	rp := kmsg.NewFetchResponseTopicPartition()
	rp.HighWatermark, rp.LastStableOffset, rp.RecordBatches = end, end, raw
	if err := p.keep(after, &rp); err != nil || len(p.ahead) == 0 {
		return nil, after, err
	}
	for _, r := range p.ahead[0].Records {
		numbers = append(numbers, r.Seq)
	}
	return numbers, p.ahead[0].Last, nil
}
