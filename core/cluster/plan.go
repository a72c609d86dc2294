package cluster

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// group is the state of a group of numbers as the node has read it.
type group struct {
	self    string
	members []string // living nodes that follow the group, self among them
	owners  []string // the living owner of each number, "" for a free one
	holds   []bool   // the numbers that self works on and keeps
	busy    []bool   // the numbers that self can neither take nor release now
}

// share decides which numbers self takes, in the order of preference, and which ones
// it gives up.
//
// Each member is due an equal part; where it does not divide evenly, those that own
// most already are due one more. So the fewest numbers move, and parts differ by at
// most one when nothing changes any more. Nodes decide for themselves. Two that see
// different states may take the same number, of which one succeeds, or give up one
// number too many, which a later look corrects.
func (g group) share() (take, giveUp []int) {
	due, position := g.due()
	var kept, idle, free []int
	for number, owner := range g.owners {
		switch {
		case g.holds[number]:
			kept = append(kept, number)
		case g.busy[number]:
		case owner == g.self:
			idle = append(idle, number)
		case owner == "":
			free = append(free, number)
		}
	}
	if len(kept) > due {
		return nil, append(kept[due:], idle...)
	}
	// Members start at different places, so that few try the same number.
	if n := len(free); n > 0 {
		at := position * n / len(g.members)
		free = append(free[at:], free[:at]...)
	}
	wanted := due - len(kept)
	if len(idle) > wanted {
		return idle[:wanted], idle[wanted:]
	}
	take = append(idle, free...)
	return take[:min(wanted, len(take))], nil
}

// due returns the part of self, and its position among the members.
func (g group) due() (part, position int) {
	owned := map[string]int{}
	for _, owner := range g.owners {
		owned[owner]++
	}
	members := slices.Clone(g.members)
	slices.SortFunc(members, func(a, b string) int {
		return cmp.Or(cmp.Compare(owned[b], owned[a]), cmp.Compare(a, b))
	})
	position = slices.Index(members, g.self)
	part = len(g.owners) / len(members)
	if position < len(g.owners)%len(members) {
		part++
	}
	return part, position
}

// preferred returns the member that takes a free job first: that with the highest
// hash, so jobs spread.
func preferred(job string, members []string) string {
	best, most := "", uint64(0)
	for _, m := range members {
		h := fnv.New64a()
		_, _ = h.Write([]byte(m + "\x00" + job))
		if sum := h.Sum64(); best == "" || sum > most {
			best, most = m, sum
		}
	}
	return best
}
