package cluster

import "time"

// observer finds dead nodes: those whose beat did not change while this node looked.
type observer struct {
	deadAfter time.Duration
	nodes     map[string]sighting
	looked    bool
	last      time.Duration // of the last look
}

// sighting is the newest beat of a node.
type sighting struct {
	beat   int64 // 0: the node has no row
	since  time.Duration
	silent time.Duration // how long the beat has not changed, as of the last look
	dead   bool
}

// recordBeats records the beats of a view that was read before now. A node that did not look
// for half of deadAfter, because it or the database was away, begins again: it cannot
// tell who could write a beat meanwhile.
func (o *observer) recordBeats(v view, self string, now time.Duration) {
	fresh := !o.looked || now-o.last > o.deadAfter/2
	o.looked, o.last = true, now
	beats := map[string]int64{}
	for _, l := range v.leases {
		if l.node != "" {
			beats[l.node] = 0
		}
	}
	for _, n := range v.nodes {
		beats[n.id] = n.beat
	}
	for id := range o.nodes {
		if _, ok := beats[id]; !ok {
			delete(o.nodes, id)
		}
	}
	for id, beat := range beats {
		s, known := o.nodes[id]
		switch {
		case known && s.beat == beat && s.dead: // until its beat changes
		case !known || s.beat != beat || fresh:
			s = sighting{beat: beat, since: now}
		}
		s.silent = now - s.since
		s.dead = id != self && (s.dead || s.silent >= o.deadAfter)
		o.nodes[id] = s
	}
}

// living reports whether a node was not dead at the last look.
func (o *observer) living(id string) bool {
	s, ok := o.nodes[id]
	return ok && !s.dead
}

// beatOf returns the newest beat of a node, 0 for an unknown one.
func (o *observer) beatOf(id string) int64 { return o.nodes[id].beat }
