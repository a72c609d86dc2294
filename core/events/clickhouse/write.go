package clickhouse

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse/refusal"
	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
	"github.com/guidonhq/guidon/core/fault"
)

// Insert implements events.Backend: it writes a row of the outbox.
func (s *Store) Insert(ctx context.Context, list []events.Insertion) ([]bool, error) {
	fresh := make([]bool, len(list))
	first := make(map[events.Identity]bool, len(list))
	var ids []events.Identity
	var places []int
	for i := range list {
		id := events.Identity{Project: list[i].Event.ProjectID, UUID: list[i].UUID}
		if !first[id] {
			first[id] = true
			ids, places = append(ids, id), append(places, i)
		}
	}
	known, checked, err := s.known(ctx, ids)
	if err != nil {
		return nil, err
	}
	n := 0
	for i := range ids {
		if !known[i] {
			ids[n], places[n] = ids[i], places[i]
			n++
		}
	}
	if ids, places = ids[:n], places[:n]; n == 0 {
		return fresh, nil
	}
	last, size, err := s.lockRows(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock the outbox: %w", err)
	}
	if s.limit > 0 && size > s.limit {
		return nil, fault.New(fault.Unavailable, "event_outbox_full", "ClickHouse has not taken events for long: the outbox of events is full.")
	}
	rows, err := s.addUUIDs(ctx, ids, last)
	if err != nil {
		return nil, fmt.Errorf("write the uuids of the outbox: %w", err)
	}
	var plain []byte
	for i, place := range places {
		row := last + int64(i) + 1
		if rows[row] {
			fresh[place] = true
			e := newEvent(&list[place], row)
			plain = e.append(plain)
		}
	}
	b := &batch{FirstRow: last + 1, LastRow: last + int64(len(ids)), Checked: checked, Content: wire.Pack(plain)}
	if err := s.addBatch(ctx, b); err != nil {
		return nil, fmt.Errorf("write the outbox: %w", err)
	}
	s.db.AfterCommit(ctx, s.stored)
	return fresh, nil
}

// Known implements events.Backend.
func (s *Store) Known(ctx context.Context, ids []events.Identity) ([]bool, error) {
	known, _, err := s.known(ctx, ids)
	return known, err
}

// The bounds of a question to a ClickHouse that may be away.
const knownTimeout, awayPause = 5 * time.Second, 5 * time.Second

// known asks the window of uuids, and then ClickHouse. checked is false if ClickHouse is away.
func (s *Store) known(ctx context.Context, ids []events.Identity) (known []bool, checked bool, err error) {
	known = make([]bool, len(ids))
	if err := s.markInOutbox(ctx, ids, known); err != nil {
		return nil, false, fmt.Errorf("read the uuids of the outbox: %w", err)
	}
	if time.Now().UnixMicro() < s.away.Load() {
		return known, false, nil
	}
	bounded, cancel := context.WithTimeout(ctx, knownTimeout)
	defer cancel()
	err = s.markStored(bounded, ids, known)
	if err != nil && ctx.Err() == nil {
		s.away.Store(time.Now().Add(awayPause).UnixMicro())
		s.health.Record(err)
		s.log.Warn("lookup of uuids in ClickHouse failed; accepting events unchecked", zap.Error(err))
		return known, false, nil
	}
	return known, true, err
}

// flushOnce inserts the first rows of the outbox and returns the number of their events; 0
// if there are none, or if another node has the lock.
func (s *Store) flushOnce(ctx context.Context) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inserted := s.inserted
	err = s.db.Tx(ctx, func(ctx context.Context) error {
		ok, err := s.tryLock(ctx)
		if err != nil || !ok {
			return err
		}
		n, err = s.insertNext(ctx)
		return err
	})
	switch {
	case err != nil:
		s.uncertain, s.inserted = true, inserted
		s.health.Failures.Inc()
		return 0, fmt.Errorf("insert the outbox: %w", err)
	case n > 0:
		s.uncertain = s.parted
	}
	return n, nil
}

func (s *Store) insertNext(ctx context.Context) (int, error) {
	st, err := s.readState(ctx)
	if err != nil {
		return 0, err
	}
	batches, err := s.nextBatches(ctx)
	if err != nil || len(batches) == 0 {
		return 0, err
	}
	s.uncertain = s.uncertain || st.Drainer != s.drainer
	if batches, err = s.claimRows(&st, batches); err != nil {
		return 0, err
	}
	if err := s.prepare(ctx); err != nil {
		return 0, err
	}
	list, unchecked, err := unpackAll(batches)
	if err != nil {
		return 0, err
	}
	first, last, all := batches[0].FirstRow, batches[len(batches)-1].LastRow, len(list)
	if s.uncertain && len(list) > 0 {
		if list, err = s.withoutInserted(ctx, list, first, last); err != nil {
			return 0, err
		}
	}
	begun := len(list) < all
	if unchecked && len(list) > 0 {
		if list, err = s.withoutKnown(ctx, list); err != nil {
			return 0, err
		}
	}
	done, err := s.insertMost(ctx, list, begun)
	if err != nil {
		return 0, s.releaseRows(err)
	}
	s.health.Record(nil)
	s.health.Inserted.Add(float64(done.Stored))
	if s.parted = len(done.Left) > 0; s.parted {
		last = done.Left[0].row - 1
		if err := s.cutBatch(ctx, batches, done.Left); err != nil {
			return 0, err
		}
	}
	s.inserted = append(s.inserted, passed{last, time.Now()})
	return len(batches), s.removeBatches(ctx, last)
}

// insertMost stores events, and gives up those that are refused. begun reports that an
// earlier attempt has stored others.
func (s *Store) insertMost(ctx context.Context, list []event, begun bool) (done refusal.Result[event], err error) {
	if s.shared.Refused == nil {
		return refusal.Result[event]{Stored: len(list)}, s.insertAll(ctx, list)
	}
	done, err = refusal.Insertion[event]{Insert: s.insertAll, GiveUp: s.giveUp, Begun: begun, Missing: func(ctx context.Context, part []event) ([]event, error) {
		return s.withoutInserted(ctx, slices.Clone(part), part[0].row, part[len(part)-1].row)
	}}.Run(ctx, list)
	if done.GivenUp > 0 {
		s.log.Error("events dead-lettered: refused by ClickHouse", zap.Int("events", done.GivenUp), zap.NamedError("first", done.Reason))
	}
	return done, err
}

// withoutInserted removes the events that an insertion with an unknown outcome has stored.
func (s *Store) withoutInserted(ctx context.Context, list []event, first, last int64) ([]event, error) {
	there, err := s.rowsBetween(ctx, list, first, last)
	if err != nil || len(there) == 0 {
		return list, err
	}
	return slices.DeleteFunc(list, func(e event) bool { return there[e.row] }), nil
}

// withoutKnown removes the events whose uuids ClickHouse has.
func (s *Store) withoutKnown(ctx context.Context, list []event) ([]event, error) {
	ids := make([]events.Identity, len(list))
	for i := range list {
		ids[i] = events.Identity{Project: list[i].project, UUID: list[i].uuid}
	}
	known := make([]bool, len(ids))
	if err := s.markStored(ctx, ids, known); err != nil {
		return nil, err
	}
	n := 0
	for i := range list {
		if !known[i] {
			list[n] = list[i]
			n++
		}
	}
	return list[:n], nil
}

// unpackAll reads the events of batches. unchecked reports that one was not compared with
// ClickHouse.
func unpackAll(batches []batch) (list []event, unchecked bool, err error) {
	for i := range batches {
		unchecked = unchecked || !batches[i].Checked
		plain, err := wire.Unpack(batches[i].Content)
		if err != nil {
			return nil, false, fmt.Errorf("read batch %d of the outbox: %w", batches[i].FirstRow, err)
		}
		r := wire.NewReader(bytes.NewReader(plain))
		for r.More() {
			list = append(list, readEvent(r))
		}
		if r.Err != nil {
			return nil, false, fmt.Errorf("read batch %d of the outbox: %w", batches[i].FirstRow, r.Err)
		}
	}
	return list, unchecked, nil
}
