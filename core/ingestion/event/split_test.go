package event_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
)

func twelve(projectID int64, distinctID string) int {
	return eventlog.PartitionOf(projectID, distinctID, 12)
}

// decodedItem is an event or a notice with its index in the request.
func decodedItems(d *event.Decoded) (out []string) {
	for i, e := range d.Events {
		out = append(out, fmt.Sprintf("%08d %s", d.Index[i], e.AppendJSON(nil)))
	}
	for _, n := range d.Notices {
		out = append(out, fmt.Sprintf("%08d %s %s %s %v", n.Index, n.Kind, n.EventUUID, n.DistinctID, n.Detail))
	}
	return out
}

// checkSplit compares the parts of a record with the whole.
func checkSplit(t *testing.T, rec event.Record) {
	t.Helper()
	want := decodedItems(ingestiontest.Decode(rec))
	parts, buf := event.NewSplitter(twelve).Split(&rec, []byte("before"))
	if !bytes.HasPrefix(buf, []byte("before")) {
		t.Fatalf("the buffer starts with %q", buf[:min(len(buf), 10)])
	}
	var got []string
	last := -1
	for _, p := range parts {
		parsed, err := event.ParseRecord(p.Data)
		if err != nil {
			t.Fatalf("part of partition %d: %v", p.Partition, err)
		}
		if p.Partition < last {
			t.Fatalf("partition %d after %d", p.Partition, last)
		}
		last = p.Partition
		d := ingestiontest.Decode(parsed)
		for i, e := range d.Events {
			if len(parts) > 1 && twelve(e.ProjectID, e.DistinctID) != p.Partition {
				t.Fatalf("event of %q in partition %d", e.DistinctID, p.Partition)
			}
			if i > 0 && d.Index[i] <= d.Index[i-1] {
				t.Fatalf("index %d after %d", d.Index[i], d.Index[i-1])
			}
		}
		got = append(got, decodedItems(d)...)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("%d parts of %.500s have\n%s\nwant\n%s", len(parts), rec.Items, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSplitKeepsEveryEvent(t *testing.T) {
	items := []string{
		`{"event":"a","distinct_id":"%d"}`, `{"event":"a","distinct_id":%d,"properties":{"distinct_id":"other"}}`,
		`{"event":"a","$distinct_id":"%d"}`, `{"event":"a","properties":{"distinct_id":"%d"}}`,
		` {"event":"a","distinct_id":" ","properties":{"$distinct_id":"%d"}} `, `{"event":"a","distinct_id":{"b":%d}}`,
		`{"event":"a","distinct_id":"\u00e4%d"}`, `{"event":"a","distinct_id":"x","distinct_id":"%d"}`,
		`{"event":"a","distinct_id":null,"$distinct_id":"%d","uuid":"no"}`, `%d`, `null`, `{}`, `{"event":"a"}`, `{"distinct_id":"%d"}`,
		`{"event":"a","distinct_id":"%d` + strings.Repeat("ä", 300) + `"}`, `{"event":"a","distinct_id":"$posthog_cookieless"}`,
		`{"event":"$identify","distinct_id":"%d","properties":{"$anon_distinct_id":"b"}}`, `{"event":"a","distinct_id":-Infinity}`,
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		var body []string
		for range r.IntN(40) {
			item := items[r.IntN(len(items))]
			if strings.Contains(item, "%d") {
				item = fmt.Sprintf(item, r.IntN(20))
			}
			body = append(body, item)
		}
		rec := ingestiontest.Record("[" + strings.Join(body, ",") + "]")
		rec.Verbatim, rec.Anonymise, rec.Historical = r.IntN(4) == 0, r.IntN(4) == 0, r.IntN(4) == 0
		if r.IntN(2) == 0 {
			rec.Trace = [24]byte{1}
		}
		if r.IntN(4) == 0 {
			rec.DefaultName, rec.Library = "named", "lib/1"
		}
		checkSplit(t, rec)
	}
	for _, items := range []string{`{"event":"a","distinct_id":"u"}`, `[]`, ``, `[{"event":"a","distinct_id":"u"},`, `[{"event":"a","distinct_id":"u"},{"event":"b","distinct_id":"v"}] x`} {
		checkSplit(t, ingestiontest.Record(items))
	}
}

// The indexes of a large request take several records of a partition.
func TestSplitManyItems(t *testing.T) {
	var b bytes.Buffer
	b.WriteByte('[')
	const n = 150_000
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		id := "a"
		if i%2 == 1 {
			id = "b"
		}
		fmt.Fprintf(&b, `{"event":"e","distinct_id":"%s"}`, id)
	}
	b.WriteByte(']')
	rec := ingestiontest.Record(b.String())
	whole := ingestiontest.Decode(rec)
	parts, _ := event.NewSplitter(func(_ int64, id string) int { return int(id[0] - 'a') }).Split(&rec, nil)
	if len(parts) != 4 {
		t.Errorf("%d parts, want two of each partition", len(parts))
	}
	next := map[int]uint32{0: 0, 1: 1}
	for _, p := range parts {
		parsed, err := event.ParseRecord(p.Data)
		if err != nil {
			t.Fatal(err)
		}
		d := ingestiontest.Decode(parsed)
		for i, e := range d.Events {
			index := d.Index[i]
			if index != next[p.Partition] || e.UUID != whole.Events[index].UUID {
				t.Fatalf("event %d of partition %d, want %d; uuid %s, want %s", index, p.Partition, next[p.Partition], e.UUID, whole.Events[index].UUID)
			}
			next[p.Partition] += 2
		}
	}
	if next[0] != n || next[1] != n+1 {
		t.Errorf("ends at %v", next)
	}
}

// A request whose events are all in one partition is stored as it is without
// partitions.
func TestSplitOnePartition(t *testing.T) {
	rec := ingestiontest.Record(`[{"event":"a","distinct_id":"u"}, 5, {"event":"b","distinct_id":"u"}]`)
	parts, _ := event.NewSplitter(twelve).Split(&rec, nil)
	if len(parts) != 1 || parts[0].Partition != twelve(1, "u") || !bytes.Equal(parts[0].Data, rec.Append(nil)) {
		t.Errorf("%+v", parts)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte(`[{"event":"a","distinct_id":"u"},{"event":"a","distinct_id":"v","$set":{"y":NaN}},{"distinct_id":7}]`), byte(0))
	f.Add([]byte("[{\"event\":5,\"distinct_id\":{\"b\":[1]},\"properties\":{\n\"a\":\"\xff\",\"distinct_id\":2}},{\"event\":\"a\",\"distinct_id\":\"\\u0000\"}]"), byte(7))
	f.Fuzz(func(t *testing.T, items []byte, flags byte) {
		rec := event.Record{ReceivedAt: ingestiontest.Arrival, ProjectID: 1, RequestID: [16]byte{5}, Items: items,
			Historical: flags&1 != 0, Anonymise: flags&2 != 0, Verbatim: flags&4 != 0}
		checkSplit(t, rec)
	})
}

func BenchmarkSplit(b *testing.B) {
	var body bytes.Buffer
	body.WriteByte('[')
	for i := range 100 {
		if i > 0 {
			body.WriteByte(',')
		}
		body.Write(ingestiontest.EventBody(i))
	}
	body.WriteByte(']')
	rec := ingestiontest.Record(body.String())
	s := event.NewSplitter(twelve)
	var buf []byte
	b.ReportAllocs()
	b.SetBytes(int64(len(rec.Items)))
	for b.Loop() {
		_, buf = s.Split(&rec, buf[:0])
	}
}
