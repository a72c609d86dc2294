package admin

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/unit"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/journal/incident"
	"github.com/guidonhq/guidon/core/web"
)

// Readiness registers the checks and fields of GET /_readiness.
type Readiness struct {
	log      Log
	host     *host.Host
	delivery delivery.Deliveries
	worker   Processing
	leftOut  LeftOut
}

// Log is the log of accepted requests.
type Log interface {
	// Stats describes the journal of this server, or of a shared log what does not
	// depend on a partition.
	Stats(ctx context.Context) (journal.Stats, error)
}

// Processing is the processing of events on this server.
type Processing interface {
	Progress() pipeline.Progress
	HistoricalProgress() pipeline.Progress
}

var _ web.Routes = (*Readiness)(nil)

// NewReadiness returns the checks of the journal, the required plugins, the trouble of
// all plugins and the progress of processing.
func NewReadiness(l Log, h *host.Host, d delivery.Deliveries, w Processing, leftOut LeftOut) *Readiness {
	return &Readiness{log: l, host: h, delivery: d, worker: w, leftOut: leftOut}
}

// Routes registers the checks.
func (r *Readiness) Routes(g *web.Router) {
	g.Check("journal", r.checkJournal)
	g.Check("plugins", func(context.Context) error { return r.host.Ready() })
	g.ReadinessField("journal", func() any { return r.journalState() })
	g.ReadinessField("plugins", func() any { return r.pluginsState() })
	g.ReadinessField("ingestion", func() any { return r.progress() })
}

// progress is the progress of processing, for events sent as they happen and
// for imports.
type progress struct {
	Live       pipeline.Progress `json:"live"`
	Historical pipeline.Progress `json:"historical"`
	// Partitions are those that this server owns; nil without a shared log.
	Partitions []unit.PartitionProgress `json:"partitions,omitzero"`
}

// partitioned is a Processing of a log in partitions.
type partitioned interface {
	Partitions() []unit.PartitionProgress
}

func (r *Readiness) progress() progress {
	p := progress{Live: r.worker.Progress(), Historical: r.worker.HistoricalProgress()}
	if by, ok := r.worker.(partitioned); ok {
		p.Partitions = by.Partitions()
	}
	return p
}

// journalState describes the damage of the journal. Records that are damaged or
// missing do not make the server unready: it goes on without them.
type journalState struct {
	State          string                 `json:"state"`              // ok, damaged, replaced or unknown
	Incidents      []incident.Incident    `json:"incidents"`          // until `guidon journal acknowledge`
	Previous       *journal.Previous      `json:"previous,omitempty"` // the lost journal that this one replaced
	DamagedRecords uint64                 `json:"damaged_records"`
	Damaged        []journal.DamagedRange `json:"damaged"`
}

// Degraded implements the interface of core/web/health.
func (s journalState) Degraded() bool { return s.State == "damaged" || s.State == "replaced" }

// maxRangesShown bounds the damaged ranges in the readiness answer.
const maxRangesShown = 20

func (r *Readiness) journalState() journalState {
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	stats, err := r.log.Stats(ctx)
	if err != nil {
		return journalState{State: "unknown", Incidents: []incident.Incident{}, Damaged: []journal.DamagedRange{}}
	}
	s := journalState{State: "ok", Previous: stats.Previous, Incidents: append([]incident.Incident{}, stats.Incidents...), Damaged: append([]journal.DamagedRange{}, stats.Damaged[:min(len(stats.Damaged), maxRangesShown)]...)}
	if len(s.Incidents) > 0 {
		s.State = "replaced"
	}
	for _, d := range stats.Damaged {
		s.State, s.DamagedRecords = "damaged", s.DamagedRecords+d.Last-d.First+1
	}
	return s
}

// statsTimeout bounds how long the answer waits for the state of the journal.
const statsTimeout = time.Second

func (r *Readiness) checkJournal(ctx context.Context) error {
	stats, err := r.log.Stats(ctx)
	if err != nil {
		return err
	}
	if stats.Broken != nil {
		return fault.New(fault.Unavailable, "journal_unavailable", "The journal takes no events.").Because(stats.Broken)
	}
	return nil
}
