package journal

import (
	"context"
	"errors"

	"github.com/guidonhq/guidon/core/journal/incident"
)

// Comparer is a journal that can be compared with what a database knows of it.
type Comparer interface {
	// Compare compares the journal with a position that a database has stored for
	// the journal id. It records an incident if that is another journal, or if this
	// one ends before the position: then records up to it are reported as damaged,
	// and no number up to it is given to a record.
	Compare(ctx context.Context, id string, seq uint64) error
}

var _ Comparer = (*store)(nil)

var errBehind = errors.New("the database has processed these records, and the journal does not hold them: it was replaced by an older copy")

// Compare implements Comparer.
func (j *store) Compare(ctx context.Context, id string, seq uint64) error {
	if id != j.id {
		if j.previous == nil || j.previous.ID != id {
			j.addIncident(incident.JournalReplaced, "The database has processed the journal %s up to record %d; this is the journal %s: "+
				"acknowledged events of the other journal that were not processed are missing.", id, seq, j.id)
		}
		return nil
	}
	if seq <= j.newest() {
		return nil
	}
	lost := &DamagedError{Last: seq, cause: errBehind}
	err := j.submit(ctx, job{
		ownTx: true,
		check: func(g *group) error {
			lost.First = g.extent.last + 1
			if g.extent.empty() {
				g.extent.first = max(g.extent.first, seq+1)
			}
			g.extent.last = max(g.extent.last, seq)
			return nil
		},
		apply: func(g *group, l *writeConn) error { return exec(l.head, int64(g.extent.last+1), g.extent.endPos) },
	}, false)
	if err != nil || lost.First > lost.Last {
		return err
	}
	j.reportDamage(lost)
	j.addIncident(incident.RecordsMissing, "The database has processed records up to %d, and the journal ends at %d: it was replaced by an older copy. "+
		"Acknowledged events that were not processed are missing.", seq, lost.First-1)
	return nil
}
