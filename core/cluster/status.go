package cluster

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// Status is the cluster as one node sees it.
type Status struct {
	// Clustered is false for a single node.
	Clustered bool         `json:"clustered"`
	Node      string       `json:"node"` // the id of the node that answers
	Nodes     []NodeStatus `json:"nodes"`
	// Free has the partitions and jobs that no node has right now.
	Free []string `json:"free"`
}

// NodeStatus is one node.
type NodeStatus struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Roles   []string `json:"roles"`
	Address string   `json:"address"`
	// State is alive, draining or dead.
	State     string    `json:"state"`
	StartedAt time.Time `json:"started_at"`
	// BeatAge is for how many seconds the beat of the node has not changed, by the
	// clock of the node that answers.
	BeatAge    float64  `json:"beat_age_seconds"`
	Partitions []string `json:"partitions"`
	Jobs       []string `json:"jobs"`
}

// Dead reports whether a node was dead when this one last looked.
func (n *Node) Dead(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.observed.nodes[id].dead
}

func (n *NodeStatus) add(lease string) {
	if job, ok := strings.CutPrefix(lease, jobGroup("")); ok {
		n.Jobs = append(n.Jobs, job)
		return
	}
	n.Partitions = append(n.Partitions, lease)
}

// Status implements Member. It reads the database.
func (n *Node) Status(ctx context.Context) (Status, error) {
	v, err := n.store.read(ctx)
	if err != nil {
		return Status{}, err
	}
	slices.SortFunc(v.leases, func(a, b leaseRow) int {
		return cmp.Or(cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	st := Status{Clustered: true, Node: n.info.ID, Nodes: []NodeStatus{}, Free: []string{}}
	now, at := n.clock(), map[string]int{}
	for _, row := range v.nodes {
		at[row.id] = len(st.Nodes)
		one := NodeStatus{
			ID: row.id, Name: row.name, Version: row.version, Roles: row.roles, Address: row.address, State: "alive",
			StartedAt: row.startedAt.UTC(), Partitions: []string{}, Jobs: []string{},
		}
		if s, ok := n.observed.nodes[row.id]; ok && s.beat == row.beat {
			one.BeatAge = (now - s.since).Seconds()
		}
		switch {
		case n.observed.nodes[row.id].dead && n.observed.nodes[row.id].beat == row.beat:
			one.State = "dead"
		case row.draining:
			one.State = "draining"
		}
		st.Nodes = append(st.Nodes, one)
	}
	for _, l := range v.leases {
		if i, ok := at[l.node]; ok {
			st.Nodes[i].add(l.name)
		} else {
			st.Free = append(st.Free, l.name)
		}
	}
	if n.info.Observer {
		st.Nodes = append(st.Nodes, NodeStatus{
			ID: n.info.ID, Name: n.info.Name, Version: n.info.Version, Roles: append([]string{}, n.info.Roles...), Address: n.info.Address,
			State: "alive", StartedAt: processStart.UTC(), Partitions: []string{}, Jobs: []string{},
		})
	}
	slices.SortFunc(st.Nodes, func(a, b NodeStatus) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.StartedAt.Compare(b.StartedAt))
	})
	return st, nil
}

// Status implements Member: one node that has everything.
func (s *Single) Status(context.Context) (Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := NodeStatus{
		ID: s.Info.ID, Name: cmp.Or(s.Info.Name, hostName()), Version: s.Info.Version, Roles: append([]string{}, s.Info.Roles...), Address: s.Info.Address,
		State: "alive", StartedAt: processStart.UTC(), Partitions: []string{}, Jobs: []string{},
	}
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		one.add(name)
	}
	if s.drained {
		one.State = "draining"
	}
	return Status{Node: one.ID, Nodes: []NodeStatus{one}, Free: []string{}}, nil
}
