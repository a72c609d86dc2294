package event_test

import (
	"bytes"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
)

func TestRecordReadsBack(t *testing.T) {
	want := event.Record{
		ReceivedAt: ingestiontest.Arrival.Add(123456 * time.Microsecond), ProjectID: 42, RequestID: [16]byte{9, 8, 7},
		Historical: true, Anonymise: true, Verbatim: true,
		ClientIP: netip.MustParseAddr("2001:db8::1"), SentAt: "2024-05-01T10:00:00Z", DefaultName: "$identify", Library: "posthog-go/1.9.0", Items: []byte(`[{}]`),
	}
	checkRoundTrip(t, want)
	want.Location = []byte("\x03\"a\"")
	checkRoundTrip(t, want)
	want.Library = ""
	checkRoundTrip(t, want)
	want.Location = nil
	checkRoundTrip(t, want)
	want.Trace = [24]byte{1, 23: 2}
	checkRoundTrip(t, want)
	want.Location = []byte("\x03\"a\"")
	checkRoundTrip(t, want)
	for _, n := range []int{1, 255, 256, 60_000} {
		want.Indexes = bytes.Repeat([]byte{1}, n)
		checkRoundTrip(t, want)
	}
	want.Trace = [24]byte{}
	checkRoundTrip(t, want)
	want.Location, want.Indexes = nil, nil
	long := want
	if long.Location = make([]byte, 1<<16); !bytes.Equal(long.Append(nil), want.Append(nil)) || long.Size() != want.Size() {
		t.Error("a location that is too long is kept")
	}
}

func checkRoundTrip(t *testing.T, want event.Record) {
	t.Helper()
	data := want.Append([]byte("x"))
	if len(data)-1 != want.Size() {
		t.Errorf("%d bytes, Size says %d", len(data)-1, want.Size())
	}
	got, err := event.ParseRecord(data[1:])
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRecordRefuses(t *testing.T) {
	whole := (&event.Record{ReceivedAt: ingestiontest.Arrival, ClientIP: netip.IPv6Loopback(), Items: []byte("{}")}).Append(nil)
	cases := map[string][]byte{
		"nothing":                  nil,
		"another version":          append([]byte{9}, whole[1:]...),
		"a head cut short":         whole[:20],
		"a field cut short":        whole[:36],
		"no location":              append([]byte{3}, whole[1:]...),
		"an address of five bytes": append(append(bytes.Clone(whole[:34]), 5, 1, 2, 3, 4, 5), whole[34:]...),
	}
	for name, data := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := event.ParseRecord(data); !errors.Is(err, event.ErrRecord) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A record with a field of a later version reads as one without it.
func TestRecordIgnoresUnknownFields(t *testing.T) {
	want := event.Record{ReceivedAt: ingestiontest.Arrival, ProjectID: 42, Trace: [24]byte{1, 23: 2}, Location: []byte("\x03\"a\""), Items: []byte(`[{}]`)}
	data := want.Append(nil)
	at := len(data) - len(want.Items) - 26 // the field Trace: tag, length, 24 bytes
	later := append(bytes.Clone(data[:at]), 77, 3, 'a', 'b', 'c')
	later = append(later, data[at:]...)
	later[at-1] += 5 // the length of all fields
	if got, err := event.ParseRecord(later); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for cut := range 27 {
		if got, err := event.ParseRecord(data[:at+cut]); err == nil && cut < 26 {
			t.Errorf("cut behind byte %d: %+v", cut, got)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add((&event.Record{ReceivedAt: ingestiontest.Arrival, ClientIP: netip.IPv6Loopback(), SentAt: "x", DefaultName: strings.Repeat("y", 255), Items: []byte("{}")}).Append(nil))
	f.Add((&event.Record{ReceivedAt: ingestiontest.Arrival, Library: "posthog-go/1.9.0", Items: []byte("{}")}).Append(nil))
	f.Add((&event.Record{ReceivedAt: ingestiontest.Arrival, Location: []byte("\x03\"a\""), Items: []byte("{}")}).Append(nil))
	f.Add((&event.Record{ReceivedAt: ingestiontest.Arrival, Trace: [24]byte{1}, Items: []byte("{}")}).Append(nil))
	f.Add((&event.Record{ReceivedAt: ingestiontest.Arrival, Indexes: bytes.Repeat([]byte{5}, 300), Items: []byte("[{},{}]")}).Append(nil))
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := event.ParseRecord(data)
		if err != nil {
			return
		}
		again := rec.Append(nil)
		if data[0] == 4 { // fields with unknown tags are not written again
			if reread, err := event.ParseRecord(again); err != nil || !reflect.DeepEqual(reread, rec) && (rec.Trace != [24]byte{} || len(rec.Indexes) > 0) {
				t.Errorf("reads %+v, then %+v, %v", rec, reread, err)
			}
			return
		}
		again[1] |= data[1] &^ 7 // bits without a meaning yet
		if !bytes.Equal(again, data) {
			t.Errorf("reads %x, writes %x", data, again)
		}
	})
}
