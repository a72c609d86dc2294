package cluster

import "slices"

// announcement is the entry for a name among the groups of the row of a node.
func announcement(kind, name string) string { return kind + ":" + name }

// Announce implements Shares. Other nodes learn of it with the next beat.
func (n *Node) Announce(kind string, names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.announced[kind] = slices.Clone(names)
}

// Announced implements Shares. It knows the other nodes as of the last poll.
func (n *Node) Announced(kind, name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.announced[kind], name) || n.elsewhere[announcement(kind, name)]
}

// noteAnnounced keeps what living nodes have in their rows. It is called with mu.
func (n *Node) noteAnnounced(v view) {
	n.elsewhere = map[string]bool{}
	for _, other := range v.nodes {
		if other.id == n.info.ID || !n.observed.living(other.id) {
			continue
		}
		for _, entry := range other.takes {
			n.elsewhere[entry] = true
		}
	}
}

// Announce implements Shares.
func (s *Single) Announce(kind string, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announced[kind] = slices.Clone(names)
}

// Announced implements Shares.
func (s *Single) Announced(kind, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.announced[kind], name)
}
