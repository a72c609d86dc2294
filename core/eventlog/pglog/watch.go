package pglog

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/eventlog/logstate"
)

// The pauses between two looks at the newest numbers: while a partition is read on this
// node, with and without notifications, and otherwise.
const (
	pollNotified = 500 * time.Millisecond
	pollAlone    = 50 * time.Millisecond
	pollIdle     = time.Second
	// idleAfter is how long a partition counts as read after its last Read or Wait.
	idleAfter = time.Minute
	// headTimeout bounds a look.
	headTimeout = 5 * time.Second
)

// watch reads the newest numbers until the log closes.
func (l *Log) watch() {
	var notified <-chan string
	pause := pollAlone
	if l.hub != nil {
		payloads, cancel := l.hub.Subscribe(topic)
		defer cancel()
		notified, pause = payloads, pollNotified
	}
	failing := false
	for {
		wait := pause
		if !l.isRead() {
			wait = pollIdle
		}
		if !l.waitPoll(notified, wait) {
			return
		}
		ctx, cancel := context.WithTimeout(l.ctx, headTimeout)
		err := l.refresh(ctx)
		cancel()
		if l.ctx.Err() == nil && (err != nil) != failing {
			failing = err != nil
			if failing {
				l.log.Warn("log unreadable", zap.Error(err))
			} else {
				l.log.Info("log readable again")
			}
		}
	}
}

// waitPoll returns when another node has appended or the pause is over; false when the log
// closes.
func (l *Log) waitPoll(notified <-chan string, pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	for {
		select {
		case payload := <-notified:
			if payload == l.sender {
				continue
			}
			return true
		case <-t.C:
			return true
		case <-l.ctx.Done():
			return false
		}
	}
}

// isRead reports whether a partition has been read lately on this node.
func (l *Log) isRead() bool {
	for _, p := range l.partitions {
		if p.isRead() {
			return true
		}
	}
	return false
}

// refresh reads the newest numbers, and the segments when they have changed. A failure is
// Unavailable, or the error of an ended ctx.
func (l *Log) refresh(ctx context.Context) error {
	l.refreshing.Lock()
	defer l.refreshing.Unlock()
	return l.refreshHead(ctx)
}

// headAge is how old the numbers may be that Stats describes.
const headAge = 250 * time.Millisecond

// refreshRecent is refresh unless that was called lately, so that the statistics of many
// partitions take one statement.
func (l *Log) refreshRecent(ctx context.Context) error {
	l.refreshing.Lock()
	defer l.refreshing.Unlock()
	if time.Since(l.refreshed) < headAge {
		return nil
	}
	return l.refreshHead(ctx)
}

// refreshHead is called with l.refreshing.
func (l *Log) refreshHead(ctx context.Context) error {
	known := make([]uint64, len(l.partitions))
	for i, p := range l.partitions {
		_, known[i] = p.Bounds()
	}
	h, err := l.store.head(ctx)
	if err == nil && !l.hasSegment(h.generation) {
		err = l.loadSegments(ctx)
	}
	if err == nil && (len(h.ends) != len(l.partitions) || len(h.trimmed) != len(l.partitions)) {
		err = errors.New("the log has another number of partitions now")
	}
	if err != nil {
		return l.unreadable(ctx, err)
	}
	l.contacted()
	l.refreshed = time.Now()
	for i, p := range l.partitions {
		p.trim(uint64(h.trimmed[i]))
		if end := uint64(h.ends[i]); end < known[i] {
			p.goBack(end)
		} else {
			p.advance(end)
		}
	}
	return nil
}

// unreadable returns the fault for a read that failed.
func (l *Log) unreadable(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case l.closed.Load():
		return logstate.ErrClosing
	}
	return logstate.ErrUnreadable.Because(err)
}

// hasSegment reports whether the newest segment is known. Older ones may have been removed
// since.
func (l *Log) hasSegment(generation int64) bool {
	l.segmentsMu.Lock()
	defer l.segmentsMu.Unlock()
	return len(l.segments) > 0 && l.segments[len(l.segments)-1].generation == generation
}

func (l *Log) loadSegments(ctx context.Context) error {
	segments, err := l.store.segments(ctx)
	if err != nil {
		return err
	}
	l.segmentsMu.Lock()
	defer l.segmentsMu.Unlock()
	l.segments = segments
	return nil
}

// segmentOf returns the segment of the record after a number.
func (l *Log) segmentOf(partition int, after uint64) (g segment) {
	l.segmentsMu.Lock()
	defer l.segmentsMu.Unlock()
	for i := len(l.segments) - 1; i >= 0; i-- {
		g = l.segments[i]
		if uint64(g.bases[partition]) <= after {
			return g
		}
	}
	return g
}
