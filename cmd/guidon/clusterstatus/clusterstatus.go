// Package clusterstatus prints the answer of GET /api/cluster: the nodes of a cluster,
// and the partitions of their log with the readers that are behind.
package clusterstatus

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/output"
)

// status is the answer.
type status struct {
	Clustered bool
	Node      string
	Nodes     []struct {
		ID, Name, Version, Address, State string

		Roles, Partitions, Jobs []string

		BeatAge float64 `json:"beat_age_seconds"`
	}
	Free       []string
	Partitions []partition
}

// partition is one of the log.
type partition struct {
	Partition int
	Node      string
	Last      uint64 `json:"last_record"`
	Readers   []reader
	Error     string
}

// reader is one of a partition.
type reader struct {
	Name          string
	RecordsBehind int64      `json:"records_behind"`
	OldestAt      *time.Time `json:"oldest_at"`
}

// Print writes the answer as tables.
func Print(w io.Writer, raw json.RawMessage, now time.Time) error {
	var st status
	if err := json.Unmarshal(raw, &st); err != nil {
		return err
	}
	rows, names := make([][]any, len(st.Nodes)), map[string]string{"": "-"}
	for i, n := range st.Nodes {
		name, beat := n.Name, time.Duration(n.BeatAge*float64(time.Second)).Round(100*time.Millisecond).String()
		if n.ID == st.Node {
			name += "*"
		}
		if !st.Clustered {
			beat = "-"
		}
		names[n.ID] = name
		rows[i] = []any{name, n.State, n.Version, n.Address, listed(n.Roles), beat, listed(n.Partitions), listed(n.Jobs)}
	}
	if err := output.Rows(w, strings.Fields("NODE STATE VERSION ADDRESS ROLES BEAT PARTITIONS JOBS"), rows); err != nil {
		return err
	}
	last := "* answers"
	switch {
	case !st.Clustered:
		last = "one server without a cluster (cluster.enabled is false)"
	case len(st.Free) > 0:
		last += "; without a server: " + strings.Join(st.Free, " ")
	}
	if _, err := fmt.Fprintln(w, last); err != nil || len(st.Partitions) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	rows = make([][]any, len(st.Partitions))
	for i, p := range st.Partitions {
		rows[i] = []any{p.Partition, names[p.Node], p.Last, p.behind(now)}
	}
	return output.Rows(w, strings.Fields("PARTITION NODE RECORDS BEHIND"), rows)
}

// behind names the readers that have records left, each with their number and the age
// of the oldest.
func (p partition) behind(now time.Time) string {
	if p.Error != "" {
		return p.Error
	}
	var out []string
	for _, r := range p.Readers {
		if r.RecordsBehind == 0 {
			continue
		}
		one := fmt.Sprintf("%s %d", r.Name, r.RecordsBehind)
		if r.OldestAt != nil {
			one += fmt.Sprintf(" (%s)", now.Sub(*r.OldestAt).Round(time.Second))
		}
		out = append(out, one)
	}
	return listed(out)
}

// listed returns values as one cell.
func listed(values []string) string {
	if len(values) == 0 {
		return "-"
	}
	return strings.Join(values, ",")
}
