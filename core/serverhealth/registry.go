package serverhealth

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// registry registers collectors at main, and those that have a metric of the list also at
// watched.
type registry struct {
	main    prometheus.Registerer
	watched *prometheus.Registry
}

// gatherer is a registry whose main one is also a Gatherer.
type gatherer struct {
	*registry
	prometheus.Gatherer
}

var (
	_ prometheus.Registerer = (*registry)(nil)
	_ prometheus.Gatherer   = gatherer{}
)

// Watch returns a registry that registers at r and remembers the collectors that a
// Recorder reads. It is a Gatherer if r is one. Nil makes a registry.
func Watch(r prometheus.Registerer) prometheus.Registerer {
	if r == nil {
		r = prometheus.NewRegistry()
	}
	watching := &registry{main: r, watched: prometheus.NewRegistry()}
	if g, ok := r.(prometheus.Gatherer); ok {
		return gatherer{watching, g}
	}
	return watching
}

// Watched returns the collectors that a Recorder reads: those that were registered at r,
// made by Watch. Another registry has none.
func Watched(r prometheus.Registerer) prometheus.Gatherer {
	if w, ok := r.(interface{ source() prometheus.Gatherer }); ok {
		return w.source()
	}
	return prometheus.NewRegistry()
}

func (r *registry) source() prometheus.Gatherer { return r.watched }

// Register implements prometheus.Registerer.
func (r *registry) Register(c prometheus.Collector) error {
	if err := r.main.Register(c); err != nil {
		return err
	}
	if hasWanted(c) {
		return r.watched.Register(c)
	}
	return nil
}

// MustRegister implements prometheus.Registerer.
func (r *registry) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// Unregister implements prometheus.Registerer.
func (r *registry) Unregister(c prometheus.Collector) bool {
	r.watched.Unregister(c)
	return r.main.Unregister(c)
}

// hasWanted reports whether a collector describes a metric of the list.
func hasWanted(c prometheus.Collector) bool {
	ch := make(chan *prometheus.Desc)
	go func() { c.Describe(ch); close(ch) }()
	found := false
	for d := range ch {
		found = found || wanted[nameOf(d)]
	}
	return found
}

// nameOf returns the name of a metric. A Desc has it only in its text, which begins with
// Desc{fqName: "NAME".
func nameOf(d *prometheus.Desc) string {
	_, rest, _ := strings.Cut(d.String(), `fqName: "`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}
