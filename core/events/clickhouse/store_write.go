package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// insertAll stores events and then their ids. Ids without an event do no harm.
func (s *Store) insertAll(ctx context.Context, list []event) error {
	if len(list) == 0 {
		return nil
	}
	ids, data := make([]byte, 0, len(list)*12), []byte(nil)
	for i := range list {
		e := &list[i]
		ids = binary.LittleEndian.AppendUint64(ids, idHash(events.Identity{Project: e.project, UUID: e.uuid}))
		ids = binary.LittleEndian.AppendUint32(ids, uint32(int32(dayOf(e.at))))
		data = e.append(data)
	}
	var settings map[string]string
	if s.modern() {
		settings = map[string]string{
			"max_partitions_per_insert_block": "0", "throw_on_max_partitions_per_insert_block": "0",
			"insert_deduplication_token": fmt.Sprintf("%x", sha256.Sum256(data)),
		}
	}
	if err := s.client.Exec(ctx, "INSERT INTO "+idTable+" ("+columnNames(idColumns)+") FORMAT RowBinary", ids, settings); err != nil {
		return err
	}
	return s.client.Exec(ctx, "INSERT INTO "+eventTable+" ("+columnNames(eventColumns)+") FORMAT RowBinary", data, settings)
}

// rowsBetween returns which rows of the given range ClickHouse has, in the times of list.
func (s *Store) rowsBetween(ctx context.Context, list []event, first, last int64) (map[int64]bool, error) {
	from, to := list[0].at, list[0].at
	for i := range list {
		from, to = min(from, list[i].at), max(to, list[i].at)
	}
	out := map[int64]bool{}
	err := s.client.Query(ctx, fmt.Sprintf("SELECT row FROM %s WHERE row >= %d AND row <= %d AND timestamp >= %d AND timestamp <= %d", eventTable, first, last, from, to),
		func(r *wire.Reader) error { out[r.Int()] = true; return nil })
	return out, err
}

// markStored sets known for the events that ClickHouse has.
func (s *Store) markStored(ctx context.Context, ids []events.Identity, known []bool) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	places := make(map[uint64][]int, len(ids))
	hashes := make([]uint64, 0, len(ids))
	for i, id := range ids {
		if known[i] {
			continue
		}
		h := idHash(id)
		if places[h] = append(places[h], i); len(places[h]) == 1 {
			hashes = append(hashes, h)
		}
	}
	if len(hashes) == 0 {
		return nil
	}
	slices.Sort(hashes)
	days := map[int64][]events.Identity{}
	err := s.client.Query(ctx, "SELECT hash, day FROM "+idTable+" WHERE hash IN ("+joinInts(hashes)+")", func(r *wire.Reader) error {
		hash, day := uint64(r.Int()), r.Day()
		for _, i := range places[hash] {
			days[day] = append(days[day], ids[i])
		}
		return nil
	})
	if err != nil || len(days) == 0 {
		return err
	}
	found, err := s.verify(ctx, days)
	for i, id := range ids {
		known[i] = known[i] || found[id]
	}
	return err
}

// verify returns which events are in the table of events, on the given days.
func (s *Store) verify(ctx context.Context, days map[int64][]events.Identity) (map[events.Identity]bool, error) {
	var conditions, uuids []string
	projects, seen := map[int64]bool{}, map[events.Identity]bool{}
	for day, ids := range days {
		conditions = append(conditions, fmt.Sprintf("timestamp >= %d AND timestamp < %d", day*dayMicros, (day+1)*dayMicros))
		for _, id := range ids {
			if projects[id.Project] = true; !seen[id] {
				seen[id] = true
				uuids = append(uuids, "toUUID("+wire.Quote(id.UUID.String())+")")
			}
		}
	}
	var list []string
	for project := range projects {
		list = append(list, strconv.FormatInt(project, 10))
	}
	without, err := s.withoutErased(ctx, 0)
	if err != nil {
		return nil, err
	}
	out := map[events.Identity]bool{}
	err = s.client.Query(ctx, "SELECT project_id, uuid FROM "+eventTable+" WHERE project_id IN ("+strings.Join(list, ",")+") AND (("+strings.Join(conditions, ") OR (")+
		")) AND uuid IN ("+strings.Join(uuids, ",")+")"+without, func(r *wire.Reader) error {
		project := r.Int()
		out[events.Identity{Project: project, UUID: r.UUID()}] = true
		return nil
	})
	return out, err
}

// withoutErased is a condition that leaves out the events of erasures that ClickHouse has not
// finished; project 0 means all.
func (s *Store) withoutErased(ctx context.Context, projectID int64) (string, error) {
	list, err := s.erased.Open(ctx, projectID)
	if err != nil {
		return "", fmt.Errorf("read open erasures: %w", err)
	}
	var out strings.Builder
	for i := range list {
		condition, err := list[i].Condition()
		if err != nil {
			return "", err
		}
		out.WriteString(" AND NOT " + condition)
	}
	return out.String(), nil
}
