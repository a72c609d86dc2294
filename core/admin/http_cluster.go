package admin

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/ingestion/unit"
	"github.com/guidonhq/guidon/core/web"
)

// Nodes lists the nodes of a cluster.
type Nodes interface {
	Status(ctx context.Context) (cluster.Status, error)
}

// Cluster serves the nodes of the cluster, for operators.
type Cluster struct {
	nodes  Nodes
	log    eventlog.Log
	public Public
}

var _ web.Routes = (*Cluster)(nil)

// NewCluster returns the handler of /api/cluster. log is the log that the nodes share;
// nil without one.
func NewCluster(n Nodes, log eventlog.Log, public Public) *Cluster {
	return &Cluster{n, log, public}
}

// Routes registers the route on the admin address and on that of the console, and the clock of a node as a field of readiness.
func (h *Cluster) Routes(g *web.Router) {
	if n, ok := h.nodes.(interface{ Clock() cluster.ClockState }); ok {
		g.ReadinessField("clock", func() any { return n.Clock() })
	}
	h.public.Register(g, "GET", "/api/cluster", "plugin:read", h.get)
}

func (h *Cluster) get(c *web.Call) error {
	status, err := h.nodes.Status(c.UserContext())
	if err != nil {
		return err
	}
	out := clusterStatus{Status: status}
	if h.log != nil {
		out.addPartitions(c.UserContext(), h.log)
	}
	return web.JSON(c.Ctx, out)
}

// clusterStatus is the answer: the nodes, and with a shared log its partitions.
type clusterStatus struct {
	cluster.Status
	Partitions []partitionStatus `json:"partitions,omitzero"`
}

// partitionStatus is a partition of the log, with its owner.
type partitionStatus struct {
	Partition int    `json:"partition"`
	Node      string `json:"node"` // the id of the owner, "" without one
	// Last is the number of the newest record.
	Last    uint64            `json:"last_record"`
	Readers []partitionReader `json:"readers"`
	// Error is why the log could not be asked.
	Error string `json:"error,omitempty"`
}

// partitionReader is a reader of a partition.
type partitionReader struct {
	Name          string     `json:"name"`
	RecordsBehind int64      `json:"records_behind"`
	OldestAt      *time.Time `json:"oldest_at"` // of those records
}

// logTimeout bounds how long the answer waits for the log.
const logTimeout = 5 * time.Second

func (s *clusterStatus) addPartitions(ctx context.Context, log eventlog.Log) {
	owners := map[int]string{}
	for _, n := range s.Nodes {
		for _, lease := range n.Partitions {
			if number, ok := strings.CutPrefix(lease, unit.Group+"/"); ok {
				if i, err := strconv.Atoi(number); err == nil {
					owners[i] = n.ID
				}
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	for i := range log.Partitions() {
		p := partitionStatus{Partition: i, Node: owners[i], Readers: []partitionReader{}}
		stats, err := log.Partition(i, 0).Stats(ctx)
		if err != nil {
			p.Error = err.Error()
		}
		p.Last = stats.Last
		for _, r := range stats.Readers {
			one := partitionReader{Name: r.Name, RecordsBehind: r.Lag}
			if !r.OldestAt.IsZero() {
				at := r.OldestAt.UTC()
				one.OldestAt = &at
			}
			p.Readers = append(p.Readers, one)
		}
		s.Partitions = append(s.Partitions, p)
	}
}
