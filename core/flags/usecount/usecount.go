// Package usecount counts the evaluations of single flags for Prometheus, with a bound
// on the number of series.
//
// A project has as many series as the setting says, and one more, (other), for all
// further flags. A series that is free goes at a scrape to the flag with the most
// evaluations since the last one, and stays with it until the flag was not evaluated
// for an hour. Both kinds of series only grow: the evaluations of a flag before it got a
// series remain in (other).
package usecount

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Other is the label of the flags without a series of their own. No flag has this key.
const Other = "(other)"

// idleAfter is how long a flag without evaluations keeps its series.
const idleAfter = time.Hour

var desc = prometheus.NewDesc("guidon_flag_evaluations_total",
	"Evaluations by project and flag, for as many flags as flags.evaluation_series says; (other) has the rest.", []string{"project", "flag"}, nil)

// Counter counts evaluations. Its methods may be called concurrently; a nil Counter
// counts nothing.
type Counter struct {
	series int
	now    func() time.Time

	mu       sync.RWMutex
	projects map[int64]*project
}

type project struct {
	mu    sync.RWMutex
	flags map[string]*flag
	other uint64 // guarded by Counter.mu
}

// flag is the count of one flag. The fields but count belong to Collect.
type flag struct {
	count atomic.Uint64
	seen  uint64 // at the last scrape
	base  uint64 // of the series: evaluations that (other) has
	own   bool   // has a series
	used  time.Time
}

// New returns a counter with that many series per project, registered at reg; nil for
// none.
func New(series int, reg prometheus.Registerer) (*Counter, error) {
	if series <= 0 || reg == nil {
		return nil, nil
	}
	c := &Counter{series: series, now: time.Now, projects: map[int64]*project{}}
	return c, reg.Register(c)
}

// Project returns the counts of a project, to count several flags of a request.
func (c *Counter) Project(id int64) Project {
	c.mu.RLock()
	p := c.projects[id]
	c.mu.RUnlock()
	if p == nil {
		c.mu.Lock()
		if p = c.projects[id]; p == nil {
			p = &project{flags: map[string]*flag{}}
			c.projects[id] = p
		}
		c.mu.Unlock()
	}
	return Project{p}
}

// Project counts the evaluations of a project.
type Project struct{ p *project }

// Count adds an evaluation of the flag.
func (p Project) Count(key string) {
	p.p.mu.RLock()
	f := p.p.flags[key]
	p.p.mu.RUnlock()
	if f == nil {
		p.p.mu.Lock()
		if f = p.p.flags[key]; f == nil {
			f = &flag{}
			p.p.flags[key] = f
		}
		p.p.mu.Unlock()
	}
	f.count.Add(1)
}

// Describe implements prometheus.Collector.
func (c *Counter) Describe(ch chan<- *prometheus.Desc) { ch <- desc }

// Collect implements prometheus.Collector.
func (c *Counter) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, p := range c.projects {
		label := strconv.FormatInt(id, 10)
		for key, n := range p.collect(c.series, c.now()) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), label, key)
		}
	}
}

// candidate is a flag that was evaluated since the last scrape and has no series.
type candidate struct {
	key   string
	flag  *flag
	delta uint64
}

// collect returns the values of the series of a project.
func (p *project) collect(series int, now time.Time) map[string]uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var candidates []candidate
	own := 0
	for key, f := range p.flags {
		n := f.count.Load()
		delta := n - f.seen
		f.seen = n
		switch {
		case delta > 0:
			f.used = now
			if !f.own {
				candidates = append(candidates, candidate{key, f, delta})
			}
		case now.Sub(f.used) > idleAfter:
			f.own = false
			if f.count.Load() == n {
				delete(p.flags, key)
				continue
			}
		}
		if f.own {
			own++
		}
	}
	p.assign(candidates, series-own)
	out := map[string]uint64{Other: p.other}
	for key, f := range p.flags {
		if f.own {
			out[key] = f.seen - f.base
		}
	}
	return out
}

// assign gives the free series to the candidates with the most evaluations, and counts
// those of the others.
func (p *project) assign(candidates []candidate, free int) {
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.delta, a.delta), cmp.Compare(a.key, b.key))
	})
	for i, c := range candidates {
		if i < free {
			c.flag.own, c.flag.base = true, c.flag.seen-c.delta
			continue
		}
		p.other += c.delta
	}
}
