package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

type clusterCmd struct {
	Status clusterStatusCmd `cmd:"" help:"Show the servers that share the database, and what each of them does."`
}

type clusterStatusCmd struct {
	serverFlags `embed:""`
	Output      string `short:"o" enum:"table,json" default:"table" help:"table or json."`
}

// clusterStatus is the answer of GET /api/cluster.
type clusterStatus struct {
	Clustered bool
	Node      string
	Nodes     []struct {
		ID, Name, Version, Address, State string

		Roles, Partitions, Jobs []string

		BeatAge float64 `json:"beat_age_seconds"`
	}
	Free []string
}

func (c clusterStatusCmd) Run(e *env) error {
	var raw json.RawMessage
	if err := c.call(e, http.MethodGet, "/api/cluster", &raw); err != nil {
		return err
	}
	if c.Output == "json" {
		return e.printJSON(raw)
	}
	var st clusterStatus
	if err := json.Unmarshal(raw, &st); err != nil {
		return err
	}
	rows := make([][]any, len(st.Nodes))
	for i, n := range st.Nodes {
		name, beat := n.Name, time.Duration(n.BeatAge*float64(time.Second)).Round(100*time.Millisecond).String()
		if n.ID == st.Node {
			name += "*"
		}
		if !st.Clustered {
			beat = "-"
		}
		rows[i] = []any{name, n.State, n.Version, n.Address, listed(n.Roles), beat, listed(n.Partitions), listed(n.Jobs)}
	}
	if err := e.table("NODE STATE VERSION ADDRESS ROLES BEAT PARTITIONS JOBS", rows); err != nil {
		return err
	}
	last := "* answers"
	switch {
	case !st.Clustered:
		last = "one server without a cluster (cluster.enabled is false)"
	case len(st.Free) > 0:
		last += "; without a server: " + strings.Join(st.Free, " ")
	}
	_, err := fmt.Fprintln(e.out, last)
	return err
}

// listed returns values as one cell.
func listed(values []string) string {
	if len(values) == 0 {
		return "-"
	}
	return strings.Join(values, ",")
}
