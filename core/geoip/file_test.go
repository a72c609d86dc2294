package geoip

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/guidonhq/guidon/core/geoip/geoiptest"
	"github.com/guidonhq/guidon/core/geoip/location"
)

// Damaged files are refused or answer with valid JSON, in bounded time, also when
// they are used without having been verified.
func FuzzDamagedFile(f *testing.F) {
	whole := geoiptest.Database(f)
	f.Add(whole, uint32(0), byte(0))
	f.Add(whole, uint32(len(whole)/2), byte(0xff))
	f.Add(whole[:len(whole)-20], uint32(3), byte(1))
	addrs := []netip.Addr{netip.MustParseAddr(geoiptest.BerlinAddress), netip.MustParseAddr(geoiptest.BerlinIPv6), netip.MustParseAddr(geoiptest.ParisAddress)}
	f.Fuzz(func(t *testing.T, raw []byte, at uint32, bits byte) {
		damaged := append([]byte(nil), raw...)
		if len(damaged) > 0 {
			damaged[int(at)%len(damaged)] ^= bits
		}
		started := time.Now()
		if reader, err := maxminddb.OpenBytes(damaged); err == nil {
			check(t, newFile(reader), addrs)
		}
		if verified, err := open(damaged); err == nil {
			check(t, verified, addrs)
		}
		if took := time.Since(started); took > 30*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func check(t *testing.T, f *file, addrs []netip.Addr) {
	t.Helper()
	for _, addr := range addrs {
		if got := location.AppendObject(nil, f.locate(addr)); !json.Valid(got) {
			t.Fatalf("not JSON: %s", got)
		}
	}
}

// Each byte of a small file is damaged in turn: none makes a lookup panic.
func TestEveryDamagedByte(t *testing.T) {
	whole := geoiptest.Database(t)
	addrs := []netip.Addr{netip.MustParseAddr(geoiptest.BerlinAddress), netip.MustParseAddr(geoiptest.NowhereAddress)}
	step := max(len(whole)/4000, 1)
	for i := 0; i < len(whole); i += step {
		for _, bits := range []byte{0x01, 0x80, 0xff} {
			whole[i] ^= bits
			if reader, err := maxminddb.OpenBytes(whole); err == nil {
				check(t, newFile(reader), addrs)
			}
			_, _ = open(whole)
			whole[i] ^= bits
		}
	}
}

// The memory of decoded records is bounded.
func TestDecodedRecordsAreBounded(t *testing.T) {
	f, err := open(geoiptest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	f.cached.Store(maxCached)
	before := f.decoded.Load()
	f.locate(netip.MustParseAddr(geoiptest.BerlinAddress))
	if f.decoded.Load() == before || f.cached.Load() != 0 {
		t.Error("the records were kept")
	}
}
