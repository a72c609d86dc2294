package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/retry"
)

// A topic belongs to one database: readers of another have cursors of their own, and
// records that one has done would be deleted although the other needs them. The claim is
// the metadata of an offset that the nodes of the database commit for partition 0, in a
// group that nothing reads. It has the identity of the database, which a copy has too, and
// the place of the database, which a restored dump has not. The brokers keep it for offsets.retention.minutes after it was
// written last (a week by default), and until the topic is deleted.
const (
	claimPrefix = "guidon database "
	claimPlace  = " at "
	// claimTimeout bounds what a start waits for the coordinator of the group.
	claimTimeout = 5 * time.Second
	// claimSettle is how long a node waits before it looks whether another database has
	// made the first claim at the same time.
	claimSettle = 500 * time.Millisecond
	// claimRenewal is how often the claim is written again.
	claimRenewal = time.Hour
)

// errTaken is the error of everything that reads or writes the log of another database.
var errTaken = fault.New(fault.Unavailable, "log_taken", "The log belongs to another database.").After(10 * time.Second)

// claim is the claim of the database of this node. Only start and maintain use it.
type claim struct {
	own     string    // as it is stored
	renewed time.Time // when it was written last
	unknown bool      // the brokers did not answer; logged
}

// same reports whether a stored claim is that of this database. A place is
// compared only if both have one.
func (c *claim) same(stored string) bool {
	id, place, _ := strings.Cut(stored, claimPlace)
	ownID, ownPlace, _ := strings.Cut(c.own, claimPlace)
	return id == ownID && (place == ownPlace || place == "" || ownPlace == "")
}

// copied reports whether a stored claim is that of a database with the same identity at
// another place.
func (c *claim) copied(stored string) bool {
	id, _, _ := strings.Cut(stored, claimPlace)
	ownID, _, _ := strings.Cut(c.own, claimPlace)
	return id == ownID && !c.same(stored)
}

func (l *Log) claimGroup() string { return "guidon-log-" + l.target.Topic }

// claimTopic claims the topic for the database at the start. It fails if another database
// has it, unless replace takes it over. Where the brokers keep no offsets, or refuse the
// group, the topic is not claimed, and a warning is logged.
func (l *Log) claimTopic(ctx context.Context, replace bool) error {
	id, err := l.cursors.Identity(ctx)
	if err != nil {
		return err
	}
	l.claim.own = claimPrefix + strconv.FormatInt(id, 16)
	place, err := l.cursors.Place(ctx)
	if err != nil {
		return err
	}
	if place != "" {
		l.claim.own += claimPlace + place
	}
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	stored, err := l.readClaim(ctx)
	for kerr.IsRetriable(err) && retry.Sleep(ctx, claimSettle/4) { // brokers create their topic of offsets at its first use
		var again error
		if stored, again = l.readClaim(ctx); ctx.Err() == nil {
			err = again
		}
	}
	if err == nil && stored != l.claim.own && (l.claim.same(stored) || stored == "" || replace) {
		if !l.claim.same(stored) && stored != "" {
			l.log.Warn("log topic taken over from another database", zap.String("topic", l.target.Topic), zap.String("from", stored))
		}
		if err = l.writeClaim(ctx); err == nil {
			retry.Sleep(ctx, claimSettle)
			stored, err = l.readClaim(ctx)
		}
	}
	return l.claimError(stored, err)
}

// claimError returns an error for the claim of another database. It logs the change of
// whether the claim is known.
func (l *Log) claimError(stored string, err error) error {
	if err != nil {
		if !l.claim.unknown {
			l.log.Warn("log topic not claimed: another database that uses it would not be noticed", zap.String("group", l.claimGroup()), zap.Error(err))
		}
		l.claim.unknown = true
		return nil
	}
	l.claim.unknown = false
	if l.claim.copied(stored) {
		return fmt.Errorf("the topic %s belongs to another copy of this database (%s, not %s), and each would delete records that the other needs: set another topic in journal.url for a copy; if the database was moved (pg_upgrade, dump and restore), stop the servers of the former one and set journal.accept_other_log for one start",
			l.target.Topic, stored, l.claim.own)
	}
	if !l.claim.same(stored) {
		return fmt.Errorf("the topic %s belongs to another database (%s, not %s), and each would delete records that the other needs: set another topic in journal.url, or take this one over with journal.accept_other_log when the other servers have stopped",
			l.target.Topic, stored, l.claim.own)
	}
	return nil
}

// checkClaim looks whether the database still has the topic, renews its claim, and stops
// reads and appends while another database has it.
func (l *Log) checkClaim(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	stored, err := l.readClaim(ctx)
	if err == nil && (stored == "" || l.claim.same(stored) && time.Since(l.claim.renewed) > claimRenewal) {
		if err = l.writeClaim(ctx); err == nil {
			stored = l.claim.own
		}
	}
	if ctx.Err() != nil || errClosed(err) {
		return
	}
	taken := l.claimError(stored, err)
	if err != nil || l.taken.Swap(taken != nil) == (taken != nil) {
		return
	}
	if taken != nil {
		l.log.Error("log stopped: its topic was taken over", zap.Error(taken))
	} else {
		l.log.Info("log goes on: its topic belongs to this database again", zap.String("topic", l.target.Topic))
	}
	for _, p := range l.partitions {
		p.mu.Lock()
		p.broadcast()
		p.mu.Unlock()
	}
}

// readClaim returns the claim of the topic, empty without one.
func (l *Log) readClaim(ctx context.Context) (string, error) {
	all, err := l.admin.FetchOffsets(ctx, l.claimGroup())
	if errors.Is(err, kerr.GroupIDNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	o, ok := all.Lookup(l.target.Topic, 0)
	if !ok {
		return "", nil
	}
	return o.Metadata, o.Err
}

func (l *Log) writeClaim(ctx context.Context) error {
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: l.target.Topic, LeaderEpoch: -1, Metadata: l.claim.own})
	done, err := l.admin.CommitOffsets(ctx, l.claimGroup(), offsets)
	if err == nil {
		err = done.Error()
	}
	if err == nil {
		l.claim.renewed = time.Now()
	}
	return err
}
