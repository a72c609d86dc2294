package startmemory

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestReleaseUnmapsTheExecutable(t *testing.T) {
	before := filePages(t)
	Release()
	after := filePages(t)
	if after >= before {
		t.Errorf("%d kB of files are resident, %d before", after, before)
	}
}

// filePages returns how many kB of mapped files are resident.
func filePages(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb
}

func TestChangedPagesStay(t *testing.T) {
	t.Parallel()
	smaps := `00400000-00500000 r-xp 00001000 fe:00 131 /opt/my guidon
Rss:                 100 kB
Anonymous:             0 kB
AnonHugePages:         0 kB
VmFlags: rd ex mr mw me
00500000-00600000 r--p 00001000 fe:00 131 /opt/my guidon
Anonymous:             4 kB
00600000-00700000 r--p 00001000 fe:00 131 /opt/my guidon
Anonymous:             0 kB
00700000-00800000 rw-p 00001000 fe:00 131 /opt/my guidon
Anonymous:             0 kB
00800000-00900000 r-xp 00001000 fe:00 131 /lib/libc.so
Anonymous:             0 kB
00900000-00a00000 r--p 00000000 00:00 0
Anonymous:             0 kB
oddities r-xp 00001000 fe:00 131 /opt/my guidon
Anonymous:             0 kB
`
	got := unchanged(strings.NewReader(smaps), "/opt/my guidon")
	want := []span{{0x400000, 0x500000}, {0x600000, 0x700000}}
	if !slices.Equal(got, want) {
		t.Errorf("unchanged mappings are %x, want %x", got, want)
	}
}
