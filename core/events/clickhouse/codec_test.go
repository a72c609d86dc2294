package clickhouse

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse/personcolumn"
	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
	"github.com/guidonhq/guidon/core/persons/stage"
)

func TestEventsKeepTheirFields(t *testing.T) {
	t.Parallel()
	list := []event{
		{},
		{
			project: 1, name: "a\x00b", at: -1, row: 1 << 60, uuid: uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff"), distinctID: "ü", person: "=",
			received: -7, url: "u", flagKey: "k", response: "r", chain: "c", properties: strings.Repeat("x", 1000),
		},
	}
	batches := []batch{{Checked: true, Content: wire.Pack(list[0].append(nil))}, {Content: wire.Pack(list[1].append(nil))}}
	got, unchecked, err := unpackAll(batches)
	if err != nil || !unchecked || len(got) != 2 || got[0] != list[0] || got[1] != list[1] {
		t.Errorf("%+v %v %v", got, unchecked, err)
	}
	whole := list[1].append(nil)
	for n := 1; n < len(whole); n++ {
		r := wire.NewReader(bytes.NewReader(whole[:n]))
		if readEvent(r); r.Err == nil {
			t.Fatalf("%d of %d bytes are no error", n, len(whole))
		}
	}
}

func TestPersonColumn(t *testing.T) {
	t.Parallel()
	other, own := uuid.NewString(), stage.PersonUUID(7, "u")
	for _, c := range []struct {
		person, distinctID string
		bytes              int
	}{{own, "u", 1}, {other, "u", 16}, {other, other, 1}} {
		column := personcolumn.Encode(uuid.MustParse(c.person), 7, c.distinctID)
		if got := personcolumn.Decode(column, 7, c.distinctID); got == nil || got.String() != c.person || len(column) != c.bytes {
			t.Errorf("%s of %s: %v from %q", c.person, c.distinctID, got, column)
		}
	}
	if got := personcolumn.Decode("", 7, "u"); got != nil {
		t.Errorf("no person is %v", got)
	}
}

func TestDayAndHash(t *testing.T) {
	t.Parallel()
	for at, want := range map[int64]int64{-1: -1, 0: 0, dayMicros - 1: 0, dayMicros: 1, -dayMicros: -1, -dayMicros - 1: -2} {
		if got := dayOf(at); got != want {
			t.Errorf("day of %d: %d, want %d", at, got, want)
		}
	}
	seen := map[uint64]bool{}
	for range 100_000 {
		h := idHash(events.Identity{Project: 1, UUID: uuid.Must(uuid.NewV7())})
		if h >= 1<<48 || seen[h] {
			t.Fatalf("hash %x is too long, or repeated", h)
		}
		seen[h] = true
	}
}
