package kafka_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A node that reads several partitions does not fetch once for each append.
func TestFetchesArePaced(t *testing.T) {
	t.Parallel()
	n := newNode(t, kfake.NumBrokers(1))
	n.cfg.AcceptWeakTopic = true
	var fetches atomic.Int64
	n.cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		n.cluster.KeepControl()
		fetches.Add(1)
		return nil, nil, false
	})
	l := n.open(t)
	for number := range 2 {
		appendTo(t, l, number, "first")
		readN(t, l.Partition(number, 1), 0, 1)
	}
	begin, before := time.Now(), fetches.Load()
	appends := 0
	for ; time.Since(begin) < 500*time.Millisecond; appends++ {
		appendTo(t, l, 0, "next")
	}
	readN(t, l.Partition(0, 1), 1, appends)
	most := 5 + int64(time.Since(begin)/(10*time.Millisecond))
	if made := fetches.Load() - before; made > most {
		t.Errorf("%d fetches in %s for %d appends, want at most %d", made, time.Since(begin), appends, most)
	}
	t.Logf("%d fetches for %d appends", fetches.Load()-before, appends)
}
