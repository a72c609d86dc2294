package clickhouse

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// schemaState is whether the tables were made and checked.
type schemaState struct {
	mu      sync.Mutex
	checked bool
	version [2]int
}

// The tables.
const (
	eventTable = "guidon_events"
	idTable    = "guidon_event_ids"
	ownerTable = "guidon_event_owner"
)

// column is a column of a table, with the codec of servers that know codecs.
type column struct{ name, kind, codec string }

// eventColumns are in the order of the fields of event. Codecs are as the server shows them.
var eventColumns = []column{
	{"project_id", "Int64", "ZSTD(3)"}, {"event", "String", "ZSTD(3)"}, {"timestamp", "Int64", "Delta(8), T64, ZSTD(3)"}, {"row", "Int64", "Delta(8), ZSTD(1)"},
	{"uuid", "UUID", "ZSTD(3)"}, {"distinct_id", "String", "ZSTD(3)"}, {"person", "String", "ZSTD(3)"}, {"received_after", "Int64", "T64, ZSTD(3)"},
	{"current_url", "String", "ZSTD(3)"}, {"flag_key", "String", "ZSTD(3)"}, {"flag_response", "String", "ZSTD(3)"}, {"elements_chain", "String", "ZSTD(3)"},
	{"properties", "String", "ZSTD(6)"},
}

var idColumns = []column{{"hash", "UInt64", "Delta(8), T64, ZSTD(3)"}, {"day", "Int32", "T64, ZSTD(3)"}}

var tables = map[string][]column{eventTable: eventColumns, idTable: idColumns}

// modern reports whether the server has codecs, skip indexes and settings of a table for
// deduplication: 22.3, or later.
func (s *Store) modern() bool { return s.schema.version[0] >= 22 }

// prepare makes the tables at the first use, and refuses those that do not fit.
func (s *Store) prepare(ctx context.Context) error {
	s.schema.mu.Lock()
	defer s.schema.mu.Unlock()
	if s.schema.checked {
		return nil
	}
	if err := s.readVersion(ctx); err != nil {
		return err
	}
	events := s.createTable(eventTable, eventColumns, "ORDER BY (project_id, event, timestamp, row)",
		"PARTITION BY toYYYYMM(toDateTime(intDiv(timestamp, 1000000), 'UTC'))",
		"INDEX by_row row TYPE minmax GRANULARITY 1", "INDEX by_distinct_id distinct_id TYPE bloom_filter(0.02) GRANULARITY 1")
	if err := s.client.EnsureTable(ctx, eventTable, events); err != nil {
		return err
	}
	if err := s.client.EnsureTable(ctx, idTable, s.createTable(idTable, idColumns, "ORDER BY (hash, day)", "")); err != nil {
		return err
	}
	for table, columns := range tables {
		if err := s.checkTable(ctx, table, columns); err != nil {
			return err
		}
		if err := s.changeCodecs(ctx, table, columns); err != nil {
			return err
		}
	}
	if err := s.checkOwner(ctx); err != nil {
		return err
	}
	s.schema.checked = true
	return nil
}

// checkOwner refuses a ClickHouse with the events of another PostgreSQL. It raises the rows of
// this one behind those of ClickHouse, which are larger after PostgreSQL was restored, and
// behind those of events that are not moved yet, which histories of actions have counted.
func (s *Store) checkOwner(ctx context.Context) error {
	if err := s.client.EnsureTable(ctx, ownerTable, "CREATE TABLE IF NOT EXISTS "+ownerTable+" (id String) ENGINE = MergeTree() ORDER BY id"); err != nil {
		return err
	}
	id, err := s.readStoreID(ctx)
	if err != nil {
		return err
	}
	read := func() (owners []string, err error) {
		return owners, s.client.Query(ctx, "SELECT DISTINCT id FROM "+ownerTable, func(r *wire.Reader) error {
			owners = append(owners, r.String())
			return nil
		})
	}
	owners, err := read()
	if err == nil && len(owners) == 0 {
		if err = s.client.Exec(ctx, "INSERT INTO "+ownerTable+" VALUES ("+wire.Quote(id)+")", nil, nil); err == nil {
			owners, err = read()
		}
	}
	switch {
	case err != nil:
		return err
	case len(owners) != 1 || owners[0] != id:
		return &wire.Error{Text: "this database in ClickHouse has the events of another PostgreSQL: choose another database in events.url", Reached: true}
	}
	row, err := s.number(ctx, "max(row)", "1")
	if err != nil {
		return err
	}
	left, err := s.lastLeft(ctx)
	if err != nil {
		return err
	}
	return s.raiseRows(ctx, max(row, left))
}

func (s *Store) readVersion(ctx context.Context) error {
	var text string
	err := s.client.Query(ctx, "SELECT version()", func(r *wire.Reader) error { text = r.String(); return nil })
	if err != nil {
		return fmt.Errorf("read the version of ClickHouse: %w", err)
	}
	parts := strings.SplitN(text, ".", 3)
	for i := range min(2, len(parts)) {
		s.schema.version[i], _ = strconv.Atoi(parts[i])
	}
	if s.schema.version[0] < 18 || s.schema.version[0] == 18 && s.schema.version[1] < 16 {
		return &wire.Error{Text: "ClickHouse " + text + " is too old: events need 18.16 or later", Reached: true}
	}
	return nil
}

func (s *Store) createTable(name string, columns []column, order, partition string, indexes ...string) string {
	var lines []string
	for _, c := range columns {
		line := quoteName(c.name) + " " + c.kind
		if s.modern() {
			line += " CODEC(" + c.codec + ")"
		}
		lines = append(lines, line)
	}
	settings := ""
	if s.modern() {
		lines = append(lines, indexes...)
		settings = " SETTINGS non_replicated_deduplication_window = 1000"
	}
	return "CREATE TABLE IF NOT EXISTS " + name + " (" + strings.Join(lines, ", ") + ") ENGINE = ReplacingMergeTree() " + partition + " " + order + settings
}

// changeCodecs gives the columns of a table that an earlier version made the codecs of this
// one. ClickHouse uses them for new parts and merges.
func (s *Store) changeCodecs(ctx context.Context, table string, columns []column) error {
	if !s.modern() {
		return nil
	}
	codecs := map[string]string{}
	err := s.client.Query(ctx, "SELECT name, compression_codec FROM system.columns WHERE database = currentDatabase() AND table = "+wire.Quote(table), func(r *wire.Reader) error {
		name := r.String()
		codecs[name] = r.String()
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the codecs of %s: %w", table, err)
	}
	var changes []string
	for _, c := range columns {
		if codecs[c.name] != "CODEC("+c.codec+")" {
			changes = append(changes, "MODIFY COLUMN "+quoteName(c.name)+" "+c.kind+" CODEC("+c.codec+")")
		}
	}
	if len(changes) == 0 {
		return nil
	}
	if err := s.client.Exec(ctx, "ALTER TABLE "+table+" "+strings.Join(changes, ", "), nil, nil); err != nil {
		s.log.Warn("codecs of ClickHouse not changed", zap.String("table", table), zap.Error(err))
	}
	return nil
}

// checkTable compares the columns and the order of a table with the expected ones.
func (s *Store) checkTable(ctx context.Context, table string, columns []column) error {
	found := map[string]string{}
	err := s.client.Query(ctx, "SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = "+wire.Quote(table), func(r *wire.Reader) error {
		name := r.String()
		found[name] = r.String()
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the columns of %s: %w", table, err)
	}
	var differences []string
	for _, c := range columns {
		if kind, ok := found[c.name]; !ok {
			differences = append(differences, fmt.Sprintf("column %s is missing", c.name))
		} else if kind != c.kind {
			differences = append(differences, fmt.Sprintf("column %s has the type %s, not %s", c.name, kind, c.kind))
		}
	}
	var engine string
	err = s.client.Query(ctx, "SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = "+wire.Quote(table), func(r *wire.Reader) error {
		engine = r.String()
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the engine of %s: %w", table, err)
	}
	if !strings.HasSuffix(engine, "ReplacingMergeTree") {
		differences = append(differences, "the engine is "+engine+", not ReplacingMergeTree")
	}
	if len(differences) > 0 {
		sort.Strings(differences)
		return &wire.Error{Text: "the table " + table + " in ClickHouse is not one of Guidon: " + strings.Join(differences, "; "), Reached: true}
	}
	return nil
}

func columnNames(columns []column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = quoteName(c.name)
	}
	return strings.Join(names, ", ")
}

func quoteName(name string) string { return "`" + name + "`" }

func joinInts[T ~int64 | ~uint64](list []T) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, ",")
}
