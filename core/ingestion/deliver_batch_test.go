package ingestion_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
)

func TestDeliverMakesBatches(t *testing.T) {
	t.Parallel()
	// Seven events of about 1,000 bytes, in requests of three, three and one.
	item := func(n int) string {
		return fmt.Sprintf(`{"event":"e%d","distinct_id":"d","properties":{"p":%q}}`, n, strings.Repeat("x", 1000))
	}
	cases := []struct {
		name  string
		batch settings.Batch
		sizes []int
	}{
		{"by their number", settings.Batch{MaxEvents: 2, Linger: time.Minute}, []int{2, 2, 2}},
		{"by their bytes", settings.Batch{MaxBytes: 4000, Linger: time.Minute}, []int{3, 3}},
		{"one that is larger than all may be goes alone", settings.Batch{MaxBytes: 10, Linger: time.Minute}, []int{1, 1, 1, 1, 1, 1, 1}},
		{"across requests, while there is time", settings.Batch{MaxEvents: 7, Linger: time.Minute}, []int{7}},
		{"and when the time is over, however few", settings.Batch{MaxEvents: 100, Linger: time.Millisecond}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
			s := configured{&fakeSink{name: "one"}, settings.Delivery{Batch: c.batch}}
			startDeliver(t, deliverConfig(), j, d, newSinks(&s))
			lay(t, j, false, item(1), item(2), item(3))
			lay(t, j, false, item(4), item(5), item(6))
			lay(t, j, false, item(7))
			want := 7
			if c.sizes != nil {
				want = 0
				for _, n := range c.sizes {
					want += n
				}
			}
			eventually(t, "the batches", func() bool { return len(strings.Fields(s.has())) >= want })
			var sizes []int
			for _, b := range s.sent() {
				sizes = append(sizes, len(b.Records))
			}
			if c.sizes != nil && !slices.Equal(sizes, c.sizes) {
				t.Errorf("batches of %v, want %v", sizes, c.sizes)
			}
			// What waits is sent with whatever comes next, never later than Linger.
			if got, all := s.has(), "e1 e2 e3 e4 e5 e6 e7"; !strings.HasPrefix(all, got) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// After any answer and any restart, batches with the same id have the same content
// and sequence numbers, and other contents have other ids.
func TestDeliverBatchIDsIdentifyTheContent(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	const n = 300
	for i := range n {
		accept(t, j, fmt.Sprintf(`{"event":"e%d","distinct_id":"u%d"}`, i, i%7))
	}
	calls := 0
	s := &fakeSink{name: "one", props: sdk.SinkProperties{MaxEvents: 16, MaxInFlight: 3}}
	s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
		switch calls++; {
		case calls%5 == 0:
			return sdk.WriteResult{}, errors.New("who knows")
		case calls%5 == 1 && len(b.Records) > 2:
			return b.Partial(sdk.Failure{Index: 1, Err: sdk.Errorf(sdk.ClassTransient, "later", "later")}), nil
		case calls%5 == 2 && len(b.Records) > 1:
			return rejects(sdk.ClassPermanent)(b)
		}
		return b.Committed(), nil
	}
	del := startDeliver(t, deliverConfig(), j, d, newSinks(s))
	eventually(t, "the first hundred", func() bool { return committed(t, j, "sink/one").Count >= 100 })
	stopDeliver(t, del)
	startDeliver(t, deliverConfig(), j, d, newSinks(s))
	eventually(t, "everything", func() bool { return committed(t, j, "sink/one").Count == n })
	contents, ids, repeated := map[string]string{}, map[string]string{}, 0
	for _, b := range s.sent() {
		content := fmt.Sprint(b.FirstSeq, b.LastSeq)
		for _, r := range b.Records {
			content += fmt.Sprintf(" %x %s", r.UUID, r.JSON)
		}
		if known, ok := contents[b.ID]; ok {
			repeated++
			if known != content {
				t.Fatalf("%s is another batch than before: %s, was %s", b.ID, content, known)
			}
		}
		if known, ok := ids[content]; ok && known != b.ID {
			t.Fatalf("the same batch is %s and %s", known, b.ID)
		}
		contents[b.ID], ids[content] = content, b.ID
	}
	if repeated == 0 {
		t.Error("no batch was sent twice")
	}
}
