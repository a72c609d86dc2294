package dictionaries

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/rowcodec"
)

const (
	firstCheck    = time.Minute    // after the start
	checkInterval = 24 * time.Hour // for dictionaries that are missing or old
)

// Start trains dictionaries in a goroutine until Stop.
func (s *Store) Start(source Source) {
	if s.db.Postgres() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop, s.done = cancel, make(chan struct{})
	go s.run(ctx, source)
}

// Stop ends the goroutine of Start and waits for it.
func (s *Store) Stop() {
	if s.stop != nil {
		s.stop()
		<-s.done
	}
}

func (s *Store) run(ctx context.Context, source Source) {
	defer close(s.done)
	timer := time.NewTimer(firstCheck)
	defer timer.Stop()
	for {
		var projects []int64
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			projects = s.takeWanted()
		case <-timer.C:
			timer.Reset(checkInterval)
			var err error
			if projects, err = source.Projects(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("dictionaries of events not checked", zap.Error(err))
			}
		}
		for _, id := range projects {
			if _, err := s.Train(ctx, source, id); err != nil && ctx.Err() == nil {
				s.log.Warn("dictionary of events not trained", zap.Int64("project_id", id), zap.Error(err))
			}
		}
	}
}

func (s *Store) takeWanted() (projects []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.wanted {
		projects = append(projects, id)
	}
	clear(s.wanted)
	return projects
}

// Train makes a dictionary for new events of a project if it has enough events and no
// dictionary, or one that is old and worse. It reports whether it did. On PostgreSQL it
// does nothing.
func (s *Store) Train(ctx context.Context, source Source, projectID int64) (bool, error) {
	if s.db.Postgres() {
		return false, nil
	}
	p, err := s.project(ctx, projectID)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	current, madeAt := p.current, p.madeAt
	s.mu.Unlock()
	if current != nil && time.Since(madeAt) < maxAge {
		return false, nil
	}
	samples, err := source.Samples(ctx, projectID, MinEvents)
	if err != nil || len(samples) < MinEvents {
		return false, err
	}
	content := rowcodec.Train(samples)
	if content == nil {
		return false, nil
	}
	if better, err := isBetter(content, current, samples); err != nil || !better {
		return false, err
	}
	return true, s.add(ctx, p, projectID, content)
}

// isBetter reports whether a dictionary makes the samples at least a tenth smaller than
// the current one.
func isBetter(content []byte, current *rowcodec.Dictionary, samples []rowcodec.Sample) (bool, error) {
	if current == nil {
		return true, nil
	}
	d, err := rowcodec.NewDictionary(current.ID(), content)
	if err != nil {
		return false, err
	}
	return 10*sizeWith(d, samples) <= 9*sizeWith(current, samples), nil
}

func sizeWith(d *rowcodec.Dictionary, samples []rowcodec.Sample) (n int) {
	var b rowcodec.Buffer
	var stored []byte
	for _, s := range samples {
		var ok bool
		if stored, ok = d.Encode(stored[:0], s.Plain, s.Columns, &b); ok {
			n += len(stored)
		} else {
			n += len(s.Plain)
		}
	}
	return n
}

// add stores a dictionary. Rows use it only after it is committed.
func (s *Store) add(ctx context.Context, p *project, projectID int64, content []byte) error {
	row := newRow(projectID, content)
	if err := s.insert(ctx, row); err != nil {
		return fmt.Errorf("store a dictionary of events: %w", err)
	}
	d, err := row.dictionary()
	if err != nil {
		return errors.Join(errors.New("a trained dictionary of events is invalid"), err)
	}
	s.mu.Lock()
	p.current, p.madeAt = d, row.MadeAt.Time
	s.byID[d.ID()] = d
	s.mu.Unlock()
	s.log.Info("dictionary of events trained", zap.Int64("project_id", projectID), zap.Int64("dictionary", d.ID()), zap.Int("bytes", len(content)))
	return nil
}
