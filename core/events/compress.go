package events

import (
	"context"
	"errors"
	"fmt"

	"github.com/guidonhq/guidon/core/db/rowcodec"
)

// encodeProperties sets the properties of rows as they are stored, and returns the
// numbers of rows by project that have no dictionary yet.
func (s *Service) encodeProperties(ctx context.Context, r *rows) (plain map[int64]int, err error) {
	if s.db.Postgres() || !s.cfg.Compress {
		for i := range r.list {
			r.list[i].setPlain()
		}
		return nil, nil
	}
	r.encoder.Begin()
	for i := range r.list {
		ev := r.list[i].Event
		if err := r.encoder.Add(ctx, s.dictionaries, ev.ProjectID, ev.Properties, ev.DistinctID, r.list[i].Columns.CurrentURL); err != nil {
			return nil, err
		}
	}
	for i := range r.list {
		if r.list[i].compressed = r.encoder.Row(i); r.list[i].compressed == nil {
			r.list[i].setPlain()
		}
	}
	return r.encoder.Plain(), nil
}

// setPlain keeps the text. A compressed row begins with a byte that no JSON begins with.
func (r *Insertion) setPlain() {
	r.Properties = string(r.Event.Properties)
	switch {
	case r.Properties == "":
		r.Properties = "{}"
	case rowcodec.IsCompressed(r.Event.Properties):
		r.Properties = " " + r.Properties
	}
}

// plain replaces the properties of rows by their text. It fails at the first row that
// is damaged, and names it.
func (s store) plain(ctx context.Context, rows []Record) error {
	d := s.dictionaries.NewDecoder()
	for i := range rows {
		r := &rows[i]
		if r.Properties == "" || r.Properties[0] >= ' ' {
			continue // text, without a copy
		}
		text, err := d.Decode(ctx, []byte(r.Properties), []byte(r.DistinctID), []byte(r.CurrentURL))
		if err != nil {
			return fmt.Errorf("properties of event %s (row %d): %w", r.UUID, r.ID, err)
		}
		r.Properties = string(text)
	}
	return nil
}

// plainErased does the same for events that are erased. A damaged row does not prevent
// that: its properties are then empty.
func (s store) plainErased(ctx context.Context, rows []erasedRow) error {
	d := s.dictionaries.NewDecoder()
	for i := range rows {
		r := &rows[i]
		text, err := d.Decode(ctx, []byte(r.Properties), []byte(r.DistinctID), []byte(r.CurrentURL))
		switch {
		case errors.Is(err, rowcodec.ErrDamaged), errors.Is(err, rowcodec.ErrDictionary):
			r.Properties = "{}"
		case err != nil:
			return err
		default:
			r.Properties = string(text)
		}
	}
	return nil
}

// Start trains dictionaries in the background until Stop, unless the setting is off, and
// starts a backend that is a Runner.
func (s *Service) Start() {
	if r, ok := s.backend.(Runner); ok {
		r.Start()
	}
	if s.dictionaries != nil && s.cfg.Compress {
		s.dictionaries.Start(s)
	}
}

// Stop ends what Start has started and waits for it.
func (s *Service) Stop() {
	if r, ok := s.backend.(Runner); ok {
		r.Stop()
	}
	if s.dictionaries != nil {
		s.dictionaries.Stop()
	}
}

// Train makes a dictionary for a project now if it needs one and has enough events, and
// reports whether it did. Start does the same in the background.
func (s *Service) Train(ctx context.Context, projectID int64) (bool, error) {
	if s.dictionaries == nil {
		return false, nil
	}
	return s.dictionaries.Train(ctx, s, projectID)
}

// samplesPerRead bounds the memory of Samples: a row may have a MiB of properties.
const samplesPerRead = 20

// Samples returns at most limit of the newest events of a project, for a dictionary.
// The properties of those that are too long for that are empty.
func (s *Service) Samples(ctx context.Context, projectID int64, limit int) (out []rowcodec.Sample, err error) {
	err = s.db.RunBackgroundScan(ctx, projectID, func(ctx context.Context) error {
		var last Cursor
		for len(out) < limit {
			rows, err := s.backend.List(ctx, projectID, Filter{Cursor: last}, min(samplesPerRead, limit-len(out)))
			if err != nil || len(rows) == 0 {
				return err
			}
			for i := range rows {
				out = append(out, rows[i].sample())
			}
			last = rows[len(rows)-1].cursor()
		}
		return nil
	})
	return out, err
}

func (r *Record) sample() rowcodec.Sample {
	ev := r.ToEvent()
	s := rowcodec.Sample{Columns: rowcodec.Columns{DistinctID: []byte(r.DistinctID), URL: []byte(r.CurrentURL)}, Person: ev.PersonID}
	if len(ev.Properties) <= rowcodec.MaxSample {
		s.Plain = ev.Properties
	}
	return s
}
