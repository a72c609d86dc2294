package cluster

import "go.uber.org/zap"

// Withhold implements Shares. Other nodes learn of it with the next beat.
func (n *Node) Withhold(group string, on bool) {
	n.mu.Lock()
	changed := n.withheld[group] != on
	n.withheld[group] = on
	n.mu.Unlock()
	if changed {
		if on {
			n.log.Info("leases withheld", zap.String("group", group))
		} else {
			n.log.Info("leases resumed", zap.String("group", group))
		}
		n.pollSoon()
	}
}

// giveAway adds to c that the node gives up a group that it is withheld from, if another
// node takes it. It returns false if the node keeps the group. It is called with mu.
func (n *Node) giveAway(o offer, g group, rows map[string]leaseRow, c *changes) bool {
	if !n.withheld[o.group] || len(g.members) == 1 {
		return false
	}
	for number, name := range o.names {
		switch s := n.slots[name]; {
		case s != nil && g.holds[number]:
			c.end = append(c.end, s)
		case s == nil && rows[name].node == n.info.ID:
			c.release = append(c.release, rows[name])
		}
	}
	return true
}

// Withhold implements Shares: there is no other node.
func (s *Single) Withhold(string, bool) {}
