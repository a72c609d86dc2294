package host

import (
	"context"
	"slices"
	"strings"
	"time"
)

const (
	tendEvery   = 15 * time.Second
	bannerEvery = time.Minute
	// firstTend is when the plugins of a host that starts are about up.
	firstTend = time.Second
)

// tend does what is to be done from time to time: it measures the processes,
// asks plugins for their metrics, and says aloud that some are not verified.
func (h *Host) tend(ctx context.Context) {
	tick := time.NewTimer(firstTend)
	defer tick.Stop()
	var said time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.Reset(tendEvery)
		}
		h.measure()
		h.scrape(ctx)
		if time.Since(said) >= bannerEvery && h.banner() {
			said = time.Now()
		}
	}
}

// banner warns of executables that nobody vouches for, and reports whether there
// was reason to.
func (h *Host) banner() bool {
	var names []string
	for _, st := range h.Status() {
		h.metrics.untested.WithLabelValues(st.Name).Set(truth(st.Unverified))
		if st.Unverified {
			names = append(names, st.Name)
		}
	}
	if len(names) == 0 {
		return false
	}
	slices.Sort(names)
	h.log.Warn("DEVELOPMENT MODE: plugins.dev is on, and these plugins run without a checksum. Whoever can write their files can run code here: " + strings.Join(names, ", "))
	return true
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// measure notes what the processes use.
func (h *Host) measure() {
	h.metrics.rss.Reset()
	h.metrics.cpu.Reset()
	for _, st := range h.Status() {
		if st.PID == 0 {
			continue
		}
		if rss, cpu, ok := usage(st.PID); ok {
			h.metrics.used(st.Name, st.PID, rss, cpu)
		}
	}
}
