package ingestion_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/capture"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// Capture divides a request by the partitions of its events; uuids are those of the
// whole request.
func TestCaptureDividesARequest(t *testing.T) {
	t.Parallel()
	log := ingestiontest.NewMemoryLog(12)
	base := webtest.Serve(t, keys(), capture.NewHTTP(nil, capture.NewMetrics(nil), zap.NewNop()).WithLog(log))
	var items []string
	for i := range 40 {
		items = append(items, fmt.Sprintf(`{"event":"e%d","distinct_id":"u%d"}`, i, i%8))
	}
	a := send(t, "POST", base+"/batch/", "application/json", `{"api_key":"phc_x","batch":[`+strings.Join(items, ",")+`]}`)
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	seen := map[uint32]string{}
	used := 0
	for p := range log.Partitions() {
		records := log.Records(p)
		if len(records) > 1 {
			t.Errorf("%d records in partition %d", len(records), p)
		}
		used += len(records)
		for _, data := range records {
			rec, err := event.ParseRecord(data)
			if err != nil {
				t.Fatal(err)
			}
			d := ingestiontest.Decode(rec)
			for i, e := range d.Events {
				if want := eventlog.PartitionOf(7, e.DistinctID, 12); want != p || e.Name != fmt.Sprint("e", d.Index[i]) {
					t.Errorf("%s of %s has index %d in partition %d, want %d", e.Name, e.DistinctID, d.Index[i], p, want)
				}
				seen[d.Index[i]] = e.UUID
			}
		}
	}
	var uuids []string
	for i := range uint32(40) {
		uuids = append(uuids, seen[i])
	}
	if used < 2 || len(seen) != 40 || !slices.IsSorted(uuids) {
		t.Errorf("%d records, %d events, uuids %v", used, len(seen), uuids)
	}
}

// A request of which a part was refused is answered with 503.
func TestCaptureRefusesARequestInParts(t *testing.T) {
	t.Parallel()
	log := ingestiontest.NewMemoryLog(12)
	base := webtest.Serve(t, keys(), capture.NewHTTP(nil, capture.NewMetrics(nil), zap.NewNop()).WithLog(log))
	refused := eventlog.PartitionOf(7, "b", 12)
	log.FailWith(func(p eventlog.Part) error {
		if p.Partition == refused {
			return fault.New(fault.Unavailable, "away", "Not now.")
		}
		return nil
	})
	const body = `{"api_key":"phc_x","batch":[{"event":"x","distinct_id":"a"},{"event":"y","distinct_id":"b"}]}`
	if a := send(t, "POST", base+"/batch/", "application/json", body); a.status != 503 {
		t.Errorf("%d %s", a.status, a.body)
	}
	log.FailWith(nil)
	if a := send(t, "POST", base+"/batch/", "application/json", body); a.status != 200 || len(log.Records(refused)) != 1 {
		t.Errorf("%d %s, %d records", a.status, a.body, len(log.Records(refused)))
	}
}
