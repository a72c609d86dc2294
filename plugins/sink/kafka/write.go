package kafka

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/guidonhq/guidon/sdk"
)

var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

func validTopic(name string) bool { return topicName.MatchString(name) && name != "." && name != ".." }

func topicOf(template string, project int64) string {
	return strings.ReplaceAll(template, "{project}", strconv.FormatInt(project, 10))
}

// Write produces the batch and waits for the brokers. When they refuse an event
// for good, such as one that is too large, that one is reported; when they fail
// for the moment the whole batch is given back, so that no event of a person
// overtakes another.
func (s *Sink) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	events, err := b.Events()
	if err != nil {
		return sdk.WriteResult{}, sdk.Permanent(err)
	}
	// The library's own timeout counts from the time of the record, which for
	// us is when the event happened.
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	answers := make([]error, len(events))
	var waiting sync.WaitGroup
	waiting.Add(len(events))
	for i := range events {
		s.client.Produce(ctx, s.record(&events[i], &b.Records[i]), func(_ *kgo.Record, err error) {
			answers[i] = err
			waiting.Done()
		})
	}
	waiting.Wait()
	var failures []sdk.Failure
	for i, err := range answers {
		e := sdk.AsError(classify(err))
		switch {
		case e == nil:
		case e.Class == sdk.ClassPermanent:
			failures = append(failures, sdk.Failure{Index: i, Err: e})
		default:
			return sdk.WriteResult{}, e
		}
	}
	return b.Partial(failures...), nil
}

func (s *Sink) record(ev *sdk.Event, r *sdk.Record) *kgo.Record {
	return &kgo.Record{
		Topic: topicOf(s.cfg.Topic, ev.ProjectID), Key: []byte(ev.DistinctID), Value: r.JSON, Timestamp: ev.Timestamp,
		Headers: []kgo.RecordHeader{
			{Key: "uuid", Value: []byte(uuid.UUID(r.UUID).String())},
			{Key: "project_id", Value: strconv.AppendInt(nil, ev.ProjectID, 10)},
		},
	}
}

// classify returns the error with the class that the host acts on.
func classify(err error) error {
	if err == nil {
		return nil
	}
	class, code, pointer := sdk.ClassTransient, "kafka", ""
	refused, ok := errors.AsType[*kerr.Error](err)
	if ok {
		code = strings.ToLower(refused.Message)
	}
	switch {
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge), errors.Is(err, kerr.InvalidRecord),
		errors.Is(err, kerr.InvalidTimestamp):
		class = sdk.ClassPermanent
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.InvalidTopicException), errors.Is(err, kerr.TopicAuthorizationFailed):
		class, pointer = sdk.ClassConfig, "/topic"
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState),
		errors.Is(err, kerr.ClusterAuthorizationFailed):
		class, pointer = sdk.ClassConfig, "/sasl"
	case errors.Is(err, kerr.ThrottlingQuotaExceeded):
		class = sdk.ClassThrottled
	}
	return &sdk.Error{Class: class, Code: code, Message: err.Error(), Pointer: pointer, Source: sdk.SourceDownstream}
}
