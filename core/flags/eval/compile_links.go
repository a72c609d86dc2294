package eval

// breakCycles disables the filters of circular dependencies between flags, so
// that evaluation terminates. Dependencies through cohorts are included.
func (c *compiler) breakCycles() {
	w := &cycleFinder{set: c.set, state: make([]tarjanNode, len(c.set.flags)+len(c.set.cohorts))}
	for i := range c.set.flags {
		w.visit(i)
	}
	for i := range c.set.cohorts {
		w.visit(len(c.set.flags) + i)
	}
	w.disableCycles()
}

// tarjanNode is the state of a node in Tarjan's algorithm. Nodes are the flags,
// then the cohorts.
type tarjanNode struct {
	order, low int32
	component  int32 // 0 until known
	open       bool
}

type cycleFinder struct {
	set        *Set
	state      []tarjanNode
	stack      []int
	next       int32
	components int32
}

// visit visits the dependencies of a node and numbers the strongly connected
// components.
func (w *cycleFinder) visit(node int) {
	m := &w.state[node]
	if m.order != 0 {
		return
	}
	w.next++
	m.order, m.low, m.open = w.next, w.next, true
	w.stack = append(w.stack, node)
	w.eachLink(node, func(_ *filter, to int) {
		w.visit(to)
		if w.state[to].open {
			m.low = min(m.low, w.state[to].low)
		}
	})
	if m.low != m.order {
		return
	}
	w.components++
	for {
		top := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		w.state[top].open, w.state[top].component = false, w.components
		if top == node {
			return
		}
	}
}

// disableCycles disables every link inside a component, because the link is part
// of a cycle.
func (w *cycleFinder) disableCycles() {
	for node := range w.state {
		w.eachLink(node, func(f *filter, to int) {
			if w.state[to].component == w.state[node].component {
				f.cause = CauseCycle
			}
		})
	}
	for node := range w.state {
		w.eachLink(node, func(f *filter, _ int) {
			if f.cause == CauseCycle {
				f.kind = byNothing
			}
		})
	}
}

// eachLink calls fn for every filter of a node on a flag or a cohort.
func (w *cycleFinder) eachLink(node int, fn func(f *filter, to int)) {
	each := func(filters []filter) {
		for i := range filters {
			switch f := &filters[i]; f.kind {
			case byFlag:
				fn(f, int(f.target))
			case byCohort:
				fn(f, len(w.set.flags)+int(f.target))
			default:
			}
		}
	}
	if node < len(w.set.flags) {
		f := &w.set.flags[node]
		if f.enrolment != nil {
			each(f.enrolment.condition.filters)
		}
		for i := range f.conditions {
			each(f.conditions[i].filters)
		}
		return
	}
	if c := &w.set.cohorts[node-len(w.set.flags)]; c.root != nil {
		eachBranch(c.root, each)
	}
}

func eachBranch(b *branch, fn func([]filter)) {
	fn(b.filters)
	for i := range b.branches {
		eachBranch(&b.branches[i], fn)
	}
}
