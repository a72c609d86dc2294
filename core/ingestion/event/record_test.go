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

func FuzzParseRecord(f *testing.F) {
	f.Add((&event.Record{ReceivedAt: ingestiontest.Arrival, ClientIP: netip.IPv6Loopback(), SentAt: "x", DefaultName: strings.Repeat("y", 255), Items: []byte("{}")}).Append(nil))
	f.Add((&event.Record{ReceivedAt: ingestiontest.Arrival, Library: "posthog-go/1.9.0", Items: []byte("{}")}).Append(nil))
	f.Add((&event.Record{ReceivedAt: ingestiontest.Arrival, Location: []byte("\x03\"a\""), Items: []byte("{}")}).Append(nil))
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := event.ParseRecord(data)
		if err != nil {
			return
		}
		again := rec.Append(nil)
		again[1] |= data[1] &^ 7 // bits without a meaning yet
		if !bytes.Equal(again, data) {
			t.Errorf("reads %x, writes %x", data, again)
		}
	})
}
