package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/eventlog/logstate"
)

// Inspect looks at the topic of cfg with its credentials, and changes nothing. It waits
// for a broker until ctx ends.
func Inspect(ctx context.Context, cfg Config) (found logstate.Inspection, err error) {
	if err := cfg.Validate(); err != nil {
		return found, err
	}
	target, err := Parse(cfg.URL)
	if err != nil {
		return found, err
	}
	l := &Log{cfg: cfg, target: target, log: zap.NewNop()}
	opts, err := target.connectOptions(cfg, l.log)
	if err != nil {
		return found, err
	}
	if l.direct, err = kgo.NewClient(opts...); err != nil {
		return found, err
	}
	defer l.direct.Close()
	l.admin = kadm.NewClient(l.direct)
	if err := l.connect(ctx); err != nil {
		return found, err
	}
	l.topic, err = l.describeTopic(ctx)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return found, nil
	}
	if err != nil {
		return found, err
	}
	found.ID, found.Weaknesses = l.topic.logID(), l.topic.weaknesses(cfg)
	ends, err := l.listOffsets(ctx, listEnd)
	if err != nil {
		return found, fmt.Errorf("read the offsets of the topic: %w", err)
	}
	for i := range l.topic.partitions {
		found.Ends = append(found.Ends, uint64(ends[int32(i)]))
	}
	return found, nil
}

// logID is the id of the log in the topic.
func (s *topicState) logID() string { return fmt.Sprintf("kafka/%s/%s", s.cluster, s.id) }
