// Package cycle finds circular links between nodes with Tarjan's algorithm.
package cycle

// Components returns the number of the strongly connected component of each of n
// nodes. A link is part of a cycle if both of its ends have the same number. each
// calls visit for every node that a node links to.
func Components(n int, each func(node int, visit func(to int))) []int32 {
	f := &finder{each: each, state: make([]state, n), numbers: make([]int32, n)}
	for node := range n {
		f.visit(node)
	}
	return f.numbers
}

// state is the state of a node in Tarjan's algorithm.
type state struct {
	order, low int32
	open       bool
}

type finder struct {
	each    func(node int, visit func(to int))
	state   []state
	numbers []int32
	stack   []int
	next    int32
	count   int32
}

// visit visits the links of a node and numbers the components.
func (f *finder) visit(node int) {
	m := &f.state[node]
	if m.order != 0 {
		return
	}
	f.next++
	m.order, m.low, m.open = f.next, f.next, true
	f.stack = append(f.stack, node)
	f.each(node, func(to int) {
		f.visit(to)
		if f.state[to].open {
			m.low = min(m.low, f.state[to].low)
		}
	})
	if m.low == m.order {
		f.closeComponent(node)
	}
}

// closeComponent numbers the component whose first node is root.
func (f *finder) closeComponent(root int) {
	f.count++
	for {
		top := f.stack[len(f.stack)-1]
		f.stack = f.stack[:len(f.stack)-1]
		f.state[top].open, f.numbers[top] = false, f.count
		if top == root {
			return
		}
	}
}
