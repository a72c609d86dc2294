package erasure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/persons"
)

// otherNodeTimeout is how long a request waits for another node.
const otherNodeTimeout = 20 * time.Second

// Erase implements persons.Recorder. The erasure is recorded when Erase fails
// with erasure_pending or because ctx ended.
func (s *Service) Erase(ctx context.Context, r persons.Removal) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make the id of an erasure: %w", err)
	}
	e := &Erasure{Removal: r, ID: id.String(), RequestedAt: time.Now().UTC().Truncate(time.Microsecond)}
	done := make(chan error, 1)
	s.mu.Lock()
	s.waiting[e.ID] = done
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, e.ID)
	}()
	err = s.db.Tx(ctx, func(ctx context.Context) error {
		if err := s.store.insert(ctx, e); err != nil {
			return err
		}
		return activity.AddAttached(ctx)
	})
	if err != nil {
		return err
	}
	s.wakeUp()
	var polled <-chan time.Time
	if s.jobs != nil {
		ticker := time.NewTicker(sharedPollInterval)
		defer ticker.Stop()
		polled = ticker.C
	}
	for {
		select {
		case err := <-done:
			return pending(err)
		case <-polled:
			if isDone, err := s.store.isDone(ctx, e.ID); err == nil && isDone {
				return nil
			}
			if time.Since(e.RequestedAt) > otherNodeTimeout {
				return pending(errOtherNode)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
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
