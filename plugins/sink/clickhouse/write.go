package clickhouse

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/sdk"
)

// maxMonths is how many partitions are written to in one insert: ClickHouse
// refuses one into more than 100.
const maxMonths = 50

// Write inserts the events. Those that are in the table already replace
// themselves.
func (s *Sink) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	events, err := b.Events()
	if err != nil {
		return sdk.WriteResult{}, sdk.Permanent(err)
	}
	for _, indexes := range byMonths(events) {
		var rows []byte
		for _, i := range indexes {
			rows = appendRow(rows, &events[i], b.Records[i].UUID)
		}
		if err := s.insert(ctx, rows); err != nil {
			return sdk.WriteResult{}, err
		}
	}
	s.seen.wrote(b.FirstSeq, b.LastSeq)
	return b.Committed(), nil
}

// insert sends rows as they are in RowBinary.
func (s *Sink) insert(ctx context.Context, rows []byte) error {
	if rows == nil {
		rows = []byte{}
	}
	_, err := s.client.do(ctx, "INSERT INTO "+s.table()+" ("+names()+") FORMAT RowBinary", rows)
	return err
}

// byMonths parts events so that none of the parts has too many months.
func byMonths(events []sdk.Event) (parts [][]int) {
	months := map[int][]int{}
	for i := range events {
		at := time.Unix(int64(seconds(events[i].Timestamp)), 0).UTC()
		month := at.Year()*12 + int(at.Month())
		months[month] = append(months[month], i)
	}
	var order []int
	for month := range months {
		order = append(order, month)
	}
	slices.Sort(order)
	for some := range slices.Chunk(order, maxMonths) {
		var part []int
		for _, month := range some {
			part = append(part, months[month]...)
		}
		parts = append(parts, part)
	}
	return parts
}

// seconds is a time as a DateTime, which has those from 1970 to 2106.
func seconds(t time.Time) uint32 { return uint32(min(max(t.Unix(), 0), math.MaxUint32)) }

// appendRow appends an event in the order of columns.
func appendRow(dst []byte, ev *sdk.Event, id [16]byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(ev.ProjectID))
	dst = binary.LittleEndian.AppendUint64(dst, binary.BigEndian.Uint64(id[:8]))
	dst = binary.LittleEndian.AppendUint64(dst, binary.BigEndian.Uint64(id[8:]))
	dst = appendText(dst, ev.Name)
	dst = appendText(dst, ev.DistinctID)
	for _, t := range []time.Time{ev.Timestamp, ev.ReceivedAt} {
		dst = binary.LittleEndian.AppendUint32(dst, seconds(t))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(t.UnixMicro()))
	}
	dst = appendText(dst, ev.Properties)
	names, values, url := flat(ev.Properties)
	dst = appendTexts(dst, names)
	dst = appendTexts(dst, values)
	dst = appendText(dst, url)
	dst = appendText(dst, ev.ElementsChain)
	return appendText(dst, ev.PersonID)
}

func appendText[T ~string | ~[]byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendTexts(dst []byte, list []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, s := range list {
		dst = appendText(dst, s)
	}
	return dst
}

var parsers fastjson.ParserPool

// flat is properties as two lists, so that they can be compared by ClickHouse of
// any version: a text is stored unchanged, everything else as JSON. When a name
// is there twice the last one counts.
func flat(properties []byte) (names, values []string, url string) {
	p := parsers.Get()
	defer parsers.Put(p)
	v, err := p.ParseBytes(properties)
	if err != nil {
		return nil, nil, ""
	}
	o, err := v.Object()
	if err != nil {
		return nil, nil, ""
	}
	at := map[string]int{}
	o.Visit(func(key []byte, v *fastjson.Value) {
		var value string
		if text, err := v.StringBytes(); err == nil {
			value = string(text)
		} else {
			value = string(v.MarshalTo(nil))
		}
		name := string(key)
		if name == "$current_url" {
			url = value
		}
		if i, twice := at[name]; twice {
			values[i] = value
			return
		}
		at[name] = len(names)
		names, values = append(names, name), append(values, value)
	})
	return names, values, url
}
