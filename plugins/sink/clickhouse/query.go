package clickhouse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// DescribeQuery returns the supported queries.
func (s *Sink) DescribeQuery(context.Context) (sdk.QueryCapabilities, error) {
	return sdk.QueryCapabilities{Fields: fields, Operators: operators, Freshness: s.cfg.Linger + time.Second, People: true}, nil
}

// where is the condition that an event is meant, or the predicates that cannot
// be expressed in SQL.
func where(q *sdk.ActionQuery) (sql string, unsupported []sdk.Predicate) {
	var steps []string
	for _, step := range q.Steps {
		var all []string
		if step.Event != "" {
			all = append(all, "event = "+text(step.Event))
		}
		for _, p := range step.AllOf {
			c, ok := condition(p)
			if !ok {
				unsupported = append(unsupported, p)
				continue
			}
			all = append(all, c)
		}
		if len(all) == 0 {
			all = []string{"1"}
		}
		steps = append(steps, "("+strings.Join(all, " AND ")+")")
	}
	if len(steps) == 0 {
		steps = []string{"0"}
	}
	// The seconds are in the key of the table, the microseconds are exact.
	return fmt.Sprintf("project_id = %d AND timestamp >= toDateTime(%d) AND timestamp <= toDateTime(%d) AND timestamp_us >= %d AND timestamp_us < %d AND (%s)",
		q.ProjectID, seconds(q.From), seconds(q.To), q.From.UnixMicro(), q.To.UnixMicro(), strings.Join(steps, " OR ")), unsupported
}

// ask runs a question within what it may look at; gaveUp when that was not
// enough.
func (s *Sink) ask(ctx context.Context, q *sdk.ActionQuery, statement string) (answer []byte, gaveUp bool, err error) {
	var settings []string
	if q.MaxRowsScanned > 0 {
		settings = []string{"max_rows_to_read", strconv.FormatUint(q.MaxRowsScanned, 10), "read_overflow_mode", "throw"}
	}
	answer, err = s.client.do(ctx, statement+" FORMAT JSONEachRow", nil, settings...)
	if refusedWith(err, codeTooManyRows) {
		return nil, true, nil
	}
	if e, ok := errors.AsType[*sdk.Error](err); ok && e.Class == sdk.ClassConfig {
		return nil, false, sdk.Transient(err) // a question does not stop the writing
	}
	return answer, false, err
}

// CountAction counts the events that match, each once.
func (s *Sink) CountAction(ctx context.Context, q *sdk.ActionQuery, bucket time.Duration) (sdk.CountResult, error) {
	r := sdk.CountResult{AsOfSeq: s.seen.at()}
	condition, unsupported := where(q)
	if len(unsupported) > 0 {
		r.Unsupported = unsupported
		return r, nil
	}
	width := bucket.Microseconds()
	start := "toInt64(0)"
	if width > 0 {
		start = fmt.Sprintf("intDiv(timestamp_us, %d) * %[1]d", width)
	}
	answer, gaveUp, err := s.ask(ctx, q, "SELECT "+start+" AS start_us, uniqExact(uuid) AS n FROM "+s.table()+" WHERE "+condition+" GROUP BY start_us ORDER BY start_us")
	if err != nil || gaveUp {
		r.Partial = gaveUp
		return r, err
	}
	err = eachRow(answer, func(line *json.Decoder) error {
		var row struct {
			Start number `json:"start_us"`
			N     number `json:"n"`
		}
		if err := line.Decode(&row); err != nil {
			return err
		}
		r.Matched += uint64(row.N)
		if width > 0 {
			r.Buckets = append(r.Buckets, sdk.QueryBucket{Start: time.UnixMicro(int64(row.Start)).UTC(), Count: uint64(row.N)})
		}
		return nil
	})
	return r, err
}

// pageSize is how many people are handed over at a time.
const pageSize = 1000

// PeopleOfAction lists the people of the matching events, by distinct id.
func (s *Sink) PeopleOfAction(ctx context.Context, q *sdk.ActionQuery, limit int, cursor []byte, page func(sdk.PeoplePage) error) error {
	condition, unsupported := where(q)
	if len(unsupported) > 0 {
		return page(sdk.PeoplePage{AsOfSeq: s.seen.at(), Unsupported: unsupported})
	}
	for given := 0; ; {
		size := pageSize
		if limit > 0 {
			size = min(size, limit-given)
		}
		p, err := s.people(ctx, q, condition, size, cursor)
		if err != nil {
			return err
		}
		if err := page(p); err != nil {
			return err
		}
		given += len(p.People)
		if cursor = p.Cursor; len(cursor) == 0 || (limit > 0 && given >= limit) {
			return nil
		}
	}
}

func (s *Sink) people(ctx context.Context, q *sdk.ActionQuery, condition string, size int, after []byte) (sdk.PeoplePage, error) {
	p := sdk.PeoplePage{AsOfSeq: s.seen.at()}
	answer, gaveUp, err := s.ask(ctx, q, fmt.Sprintf("SELECT distinct_id, uniqExact(uuid) AS n, min(timestamp_us) AS first_us, max(timestamp_us) AS last_us FROM %s WHERE %s AND distinct_id > %s GROUP BY distinct_id ORDER BY distinct_id LIMIT %d",
		s.table(), condition, text(string(after)), size+1))
	if err != nil {
		return p, err
	}
	if gaveUp {
		return p, sdk.Errorf(sdk.ClassPermanent, "too_many_rows", "there are more than %d events to look at", q.MaxRowsScanned)
	}
	err = eachRow(answer, func(line *json.Decoder) error {
		var row struct {
			DistinctID string `json:"distinct_id"`
			N          number `json:"n"`
			First      number `json:"first_us"`
			Last       number `json:"last_us"`
		}
		if err := line.Decode(&row); err != nil {
			return err
		}
		p.People = append(p.People, sdk.QueryPerson{
			DistinctID: row.DistinctID, Count: uint64(row.N),
			FirstSeen: time.UnixMicro(int64(row.First)).UTC(), LastSeen: time.UnixMicro(int64(row.Last)).UTC(),
		})
		return nil
	})
	if len(p.People) > size {
		p.People = p.People[:size]
		p.Cursor = []byte(p.People[size-1].DistinctID)
	}
	return p, err
}

// number is a whole number, in quotes or not: that is a setting of the server.
type number int64

func (n *number) UnmarshalJSON(raw []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(raw), `"`), 10, 64)
	*n = number(v)
	return err
}

// eachRow calls row for each line of an answer.
func eachRow(answer []byte, row func(*json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(answer))
	for {
		switch err := row(d); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return sdk.Errorf(sdk.ClassTransient, "answer_unreadable", "cannot read the answer of ClickHouse: %w", err).From(sdk.SourceDownstream)
		}
	}
}
