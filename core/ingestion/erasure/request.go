package erasure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/persons"
)

// otherNodeTimeout is how long a request waits for another node.
const otherNodeTimeout = 20 * time.Second

// Erase implements persons.Recorder. The erasure is recorded when Erase fails
// with erasure_pending or because ctx ended. A request that is repeated meanwhile waits
// for the same erasure, unless that has begun: events may have been accepted since.
func (s *Service) Erase(ctx context.Context, r persons.Removal) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make the id of an erasure: %w", err)
	}
	e := &Erasure{Removal: r, ID: id.String(), RequestedAt: time.Now().UTC().Truncate(time.Microsecond)}
	done := make(chan error, 1)
	err = s.db.Tx(ctx, func(ctx context.Context) error {
		err := s.store.insertOrJoin(ctx, e)
		if err != nil {
			return err
		}
		s.addWaiting(e.ID, done) // before the commit: nothing carries it out yet
		return activity.AddAttached(ctx)
	})
	defer s.removeWaiting(e.ID, done)
	if err != nil {
		return err
	}
	s.wakeUp()
	var late <-chan time.Time
	if s.jobs != nil {
		late = time.After(otherNodeTimeout)
	}
	select {
	case err := <-done:
		return pending(err)
	case <-late:
		return pending(errOtherNode)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answerDone answers the requests of this node whose erasures another node has carried out.
// What cannot be read is read the next time.
func (s *Service) answerDone(ctx context.Context) {
	s.mu.Lock()
	ids := slices.Collect(maps.Keys(s.waiting))
	s.mu.Unlock()
	done, err := s.store.doneOf(ctx, ids)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("erasures of other nodes not read; retrying", zap.Error(err))
	}
	for _, id := range done {
		s.answer(id, nil)
	}
}

// answer sends the outcome of an erasure to the requests that wait for it.
func (s *Service) answer(id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, done := range s.waiting[id] {
		done <- err
	}
	delete(s.waiting, id)
}

// addWaiting makes answer send the outcome of an erasure to done, once.
func (s *Service) addWaiting(id string, done chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[id] = append(s.waiting[id], done)
}

func (s *Service) removeWaiting(id string, done chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.waiting[id], func(other chan error) bool { return other == done })
	if s.waiting[id] = left; len(left) == 0 {
		delete(s.waiting, id)
	}
}

var errOtherNode = errors.New("the node that carries out erasures has not done it yet")

// pending is the error of an erasure that failed and is tried again; nil for nil.
func pending(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.Unavailable, "erasure_pending",
		"The deletion is recorded. It is carried out as soon as the journal and the database can be written.").Because(err).After(pollInterval)
}

func (s *Service) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
