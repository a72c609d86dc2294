package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"
)

// leastRetention is the shortest retention by time that a topic may have. While it is
// finite, appends are refused before it reaches an unread record.
const leastRetention = 24 * time.Hour

// recordOverhead is above what the format of a batch adds to a single record.
const recordOverhead = 64 << 10

// topicState is what a start finds out about the topic.
type topicState struct {
	cluster    string
	id         string // of the topic, or its name with brokers that have no ids
	partitions int
	replicas   int           // the least of all partitions
	retention  time.Duration // 0 keeps records for ever
	settings   map[string]string
}

// openTopic returns the state of the topic, which it creates if it does not exist. It
// fails if the topic has fewer partitions than the config, or cannot keep acknowledged
// records, with every reason.
func (l *Log) openTopic(ctx context.Context) (*topicState, error) {
	s, err := l.describeTopic(ctx)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		if err := l.createTopic(ctx); err != nil {
			return nil, err
		}
		s, err = l.describeCreated(ctx)
	}
	if err != nil {
		return nil, err
	}
	if s.partitions < l.cfg.Partitions {
		return nil, fmt.Errorf("the topic %s has %d partitions and journal.partitions is %d, so fewer servers could process events than the setting says: set journal.partitions to %d, or add partitions before the first start with this topic (later the number cannot change)",
			l.target.Topic, s.partitions, l.cfg.Partitions, s.partitions)
	}
	reasons := s.weaknesses(l.cfg)
	if len(reasons) == 0 {
		return s, nil
	}
	text := fmt.Sprintf("the topic %s may lose acknowledged events: %s", l.target.Topic, strings.Join(reasons, "; "))
	if !l.cfg.AcceptWeakTopic {
		return nil, fmt.Errorf("%s. Change the topic, or set journal.accept_weak_topic", text)
	}
	l.log.Warn("log topic is weak", zap.String("topic", l.target.Topic), zap.Strings("reasons", reasons))
	return s, nil
}

// describeCreated waits until all brokers know the topic that was created.
func (l *Log) describeCreated(ctx context.Context) (s *topicState, err error) {
	for {
		s, err = l.describeTopic(ctx)
		if err == nil || !errors.Is(err, kerr.UnknownTopicOrPartition) && !kerr.IsRetriable(errors.Unwrap(err)) {
			return s, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (l *Log) describeTopic(ctx context.Context) (*topicState, error) {
	m, err := l.admin.Metadata(ctx, l.target.Topic)
	if err != nil {
		return nil, fmt.Errorf("read the metadata of the topic: %w", err)
	}
	t, ok := m.Topics[l.target.Topic]
	if !ok || t.Err == nil && len(t.Partitions) == 0 {
		t.Err = kerr.UnknownTopicOrPartition
	}
	if t.Err != nil {
		return nil, fmt.Errorf("read the topic %s: %w", l.target.Topic, t.Err)
	}
	s := &topicState{cluster: m.Cluster, id: t.ID.String(), partitions: len(t.Partitions), settings: map[string]string{}}
	if t.ID == (kadm.TopicID{}) {
		s.id = l.target.Topic
	}
	for _, p := range t.Partitions {
		if s.replicas == 0 || len(p.Replicas) < s.replicas {
			s.replicas = len(p.Replicas)
		}
	}
	configs, err := l.admin.DescribeTopicConfigs(ctx, l.target.Topic)
	if err != nil {
		return nil, fmt.Errorf("read the settings of the topic: %w", err)
	}
	c, err := configs.On(l.target.Topic, nil)
	if err = errors.Join(err, c.Err); err != nil {
		return nil, fmt.Errorf("read the settings of the topic %s: %w", l.target.Topic, err)
	}
	for _, setting := range c.Configs {
		s.settings[setting.Key] = setting.MaybeValue()
	}
	if ms, err := strconv.ParseInt(s.settings["retention.ms"], 10, 64); err == nil && ms >= 0 && ms < int64(1<<62/time.Millisecond) {
		s.retention = time.Duration(ms) * time.Millisecond
	}
	return s, nil
}

// weaknesses returns the reasons why the topic does not keep what was acknowledged until
// all readers have read it.
func (s *topicState) weaknesses(cfg Config) (reasons []string) {
	number := func(key string) (n int64, ok bool) {
		n, err := strconv.ParseInt(s.settings[key], 10, 64)
		return n, err == nil
	}
	add := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	if s.replicas < 2 {
		add("it has one replica")
	}
	if n, ok := number("min.insync.replicas"); ok && n < 2 {
		add("min.insync.replicas is %d: a record may be on one broker only", n)
	}
	if s.settings["unclean.leader.election.enable"] == "true" {
		add("unclean.leader.election.enable is true")
	}
	if strings.Contains(s.settings["cleanup.policy"], "compact") {
		add("cleanup.policy is %s", s.settings["cleanup.policy"])
	}
	if n, ok := number("retention.ms"); ok && n >= 0 && n < leastRetention.Milliseconds() {
		add("retention.ms is %d, less than %v", n, leastRetention)
	}
	if n, ok := number("retention.bytes"); ok && n >= 0 {
		add("retention.bytes is %d: unread records may be removed", n)
	}
	if n, ok := number("max.message.bytes"); ok && n < int64(cfg.MaxRecordBytes) {
		add("max.message.bytes is %d, less than journal.max_record_bytes (%d): larger requests would be refused for good", n, cfg.MaxRecordBytes)
	}
	return reasons
}

// createTopic creates the topic with settings that keep every record.
func (l *Log) createTopic(ctx context.Context) error {
	m, err := l.admin.BrokerMetadata(ctx)
	if err != nil {
		return fmt.Errorf("read the brokers: %w", err)
	}
	replicas := l.cfg.ReplicationFactor
	if replicas == 0 {
		replicas = min(3, len(m.Brokers))
	}
	inSync := 1
	if replicas >= 3 {
		inSync = 2
	}
	if inSync < 2 && !l.cfg.AcceptWeakTopic {
		return fmt.Errorf("the topic %s does not exist, and %d replicas (of %d brokers) cannot keep acknowledged events: three are needed. Add brokers, or set journal.accept_weak_topic",
			l.target.Topic, replicas, len(m.Brokers))
	}
	settings := map[string]string{
		"min.insync.replicas": strconv.Itoa(inSync), "unclean.leader.election.enable": "false",
		"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete",
		"message.timestamp.type": "LogAppendTime", "max.message.bytes": strconv.Itoa(l.cfg.MaxRecordBytes + recordOverhead),
	}
	values := map[string]*string{}
	for k, v := range settings {
		values[k] = &v
	}
	r, err := l.admin.CreateTopic(ctx, int32(l.cfg.Partitions), int16(replicas), values, l.target.Topic)
	if err == nil {
		err = r.Err
	}
	if errors.Is(err, kerr.TopicAlreadyExists) { // by another node
		return nil
	}
	if err != nil {
		return fmt.Errorf("create the topic %s: %w %s", l.target.Topic, err, r.ErrMessage)
	}
	l.log.Info("log topic created", zap.String("topic", l.target.Topic), zap.Int("partitions", l.cfg.Partitions),
		zap.Int("replicas", replicas), zap.Int("min_insync_replicas", inSync))
	return nil
}

// batchBytes is the largest batch that the topic takes.
func (s *topicState) batchBytes(cfg Config) int32 {
	most := int64(cfg.MaxRecordBytes + recordOverhead)
	if n, err := strconv.ParseInt(s.settings["max.message.bytes"], 10, 64); err == nil && n > 0 {
		most = min(most, n)
	}
	return int32(most)
}
