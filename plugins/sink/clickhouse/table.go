package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guidonhq/guidon/sdk"
)

// column is a column of the table. They are only ever added, at the end: older
// rows have the type's empty value in those that came later.
type column struct {
	name, kind string
	since      int // version of the schema that it came with
}

// columns in the order in which rows are written. The version of the schema is
// the highest of theirs.
var columns = []column{
	{"project_id", "Int64", 1},
	{"uuid", "UUID", 1},
	{"event", "String", 1},
	{"distinct_id", "String", 1},
	{"timestamp", "DateTime('UTC')", 1},
	{"timestamp_us", "Int64", 1},
	{"received_at", "DateTime('UTC')", 1},
	{"received_at_us", "Int64", 1},
	{"properties", "String", 1},
	{"property_names", "Array(String)", 1},
	{"property_values", "Array(String)", 1},
	{"current_url", "String", 1},
	{"elements_chain", "String", 1},
	{"person_id", "String", 1},
}

func names() string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = c.name
	}
	return strings.Join(out, ", ")
}

func quoted(name string) string { return "`" + name + "`" }

func (s *Sink) table() string { return quoted(s.cfg.Database) + "." + quoted(s.cfg.Table) }

// prepare makes the table fit, or finds out that it does not.
func (s *Sink) prepare(ctx context.Context) error {
	missing, err := s.missing(ctx)
	if err != nil || len(missing) == 0 {
		return err
	}
	if !s.cfg.Manage {
		var list []string
		for _, c := range missing {
			list = append(list, c.name)
		}
		return sdk.ConfigError("/table", fmt.Errorf("%s has no columns %s, and with manage off they are not made", s.table(), strings.Join(list, ", ")))
	}
	if err := s.create(ctx); err != nil {
		return err
	}
	// A table that was there already may be of an earlier version.
	if missing, err = s.missing(ctx); err != nil {
		return err
	}
	for _, c := range missing {
		_, err := s.client.do(ctx, "ALTER TABLE "+s.table()+s.onCluster()+" ADD COLUMN "+c.name+" "+c.kind, nil)
		if err != nil && !refusedWith(err, codeDuplicateColumn) { // another node was faster
			return err
		}
	}
	return nil
}

// missing lists the columns that the table lacks.
func (s *Sink) missing(ctx context.Context) (missing []column, err error) {
	answer, err := s.client.do(ctx, "SELECT name FROM system.columns WHERE database = "+text(s.cfg.Database)+" AND table = "+text(s.cfg.Table)+" FORMAT JSONEachRow", nil)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	err = eachRow(answer, func(line *json.Decoder) error {
		var row struct{ Name string }
		if err := line.Decode(&row); err != nil {
			return err
		}
		has[row.Name] = true
		return nil
	})
	for _, c := range columns {
		if !has[c.name] {
			missing = append(missing, c)
		}
	}
	return missing, err
}

// create makes the table if it is not there. Rows of the same event have the
// same key, and ClickHouse keeps one of them when it merges.
func (s *Sink) create(ctx context.Context) error {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = c.name + " " + c.kind
	}
	_, err := s.client.do(ctx, "CREATE TABLE IF NOT EXISTS "+s.table()+s.onCluster()+" ("+strings.Join(list, ", ")+") ENGINE = "+s.cfg.Engine+
		" PARTITION BY toYYYYMM(timestamp) ORDER BY (project_id, event, toDate(timestamp), uuid)", nil)
	return err
}

func (s *Sink) onCluster() string {
	if s.cfg.Cluster == "" {
		return ""
	}
	return " ON CLUSTER " + quoted(s.cfg.Cluster)
}
