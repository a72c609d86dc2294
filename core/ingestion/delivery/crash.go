package delivery

import (
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/sdk"
)

// Restarts are expensive, and the host pauses a plugin that crashes too often. A
// crashing event is found with few crashes, though with many calls. A batch
// that crashed the plugin is sent again exclusively, without any other call of its process
// beside it, also of other sinks and partitions; then in parts, each of about
// the square root of its size; then the crashing part event by event. With five
// restarts one event is found in a batch of a thousand.
const (
	partCrashes  = 1 // exclusive crashes before the records are sent in parts
	eventCrashes = 2 // exclusive crashes before a single event is a dead letter
	// maxCrashStreak bounds the consecutive events that become dead letters so. If
	// more crash the plugin, the events are probably not the cause.
	maxCrashStreak = 3
	// maxProvenStreak is that bound for a sink that has taken events since the start.
	maxProvenStreak = 10
	// doubtfulCrashes and doubtfulTime are what an event behind the streak needs to
	// become a dead letter: a longer time than the host's first quarantine.
	doubtfulCrashes = 8
	doubtfulTime    = 10 * time.Minute
	// maxSingle is the number of events up to which a batch is sent event by event.
	maxSingle = 64
)

// crashesSuffice reports whether that many crashes since a time are enough to take n
// records for the cause.
func (s *sender) crashesSuffice(n, crashes int, since time.Time) bool {
	switch {
	case n > 1:
		return crashes >= partCrashes
	case s.crashStreakEnded():
		return crashes >= doubtfulCrashes && time.Since(since) >= s.doubtfulTime
	}
	return crashes >= eventCrashes
}

// crashStreakEnded reports whether so many events in a row have crashed the plugin that
// its exits do not show an event as the cause.
func (s *sender) crashStreakEnded() bool {
	limit := int64(maxCrashStreak)
	if s.stats.Delivered() > 0 {
		limit = maxProvenStreak
	}
	return s.crashStreak.Load() >= limit
}

// maxCrashed bounds the remembered events that crashed the plugin.
const maxCrashed = 32

// noteCrashed remembers an event that crashed the plugin and is a dead letter.
func (s *sender) noteCrashed(ev *sdk.Event) {
	list := []eventKey{{ev.ProjectID, ev.UUID}}
	if old := s.crashed.Load(); old != nil {
		list = append((*old)[max(0, len(*old)-maxCrashed+1):len(*old):len(*old)], list...)
	}
	s.crashed.Store(&list) // a batch that crashes the plugin is sent alone: no other call writes
}

// eventKey identifies an event.
type eventKey struct {
	project int64
	uuid    string
}

// isolateCrash sends records that crash the plugin in parts; a single one becomes
// a dead letter.
func (s *sender) isolateCrash(b *batch, from, to int, st retryState, cause *sdk.Error) error {
	if to-from == 1 {
		explained := !s.crashStreakEnded()
		s.crashStreak.Add(1)
		e := sdk.Errorf(sdk.ClassPermanent, codeCrash, "the plugin's process ends whenever it is sent this event: %s", cause.Message)
		err := s.addDeadLetter(&b.events[from], b.firstSeq+uint64(from), e)
		if err == nil {
			s.noteCrashed(&b.events[from])
		}
		if err == nil && explained {
			s.forgiveExits()
		}
		return err
	}
	part := 1
	if n := to - from; n > maxSingle {
		part = int(math.Ceil(math.Sqrt(float64(n))))
	}
	s.logger.Warn("batch crashes the plugin; isolating the event", zap.Int("events", to-from), zap.Int("part_size", part))
	for start := from; start < to; start += part {
		if err := s.send(b, start, min(start+part, to), st); err != nil {
			return err
		}
	}
	return nil
}
