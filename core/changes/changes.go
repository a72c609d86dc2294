// Package changes tells clients that flags, cohorts or actions of a project
// changed, as soon as they did.
//
// The changelog (core/changes/changelog) has one revision per project, which
// grows with each change and never goes back. While streams are open, the Hub
// polls the revisions of their projects with one cheap query; so it finds changes
// of every process, on both databases. Of a project with a new revision it first
// refreshes the memory of this process, so that a client that asks at once gets
// the new values, and then writes the changes to the streams of the project.
//
// There are two streams, both of server-sent events. The public one, for project
// keys, has the event refetchEvaluation of the OpenFeature Remote Evaluation
// Protocol and no details. The one for personal keys has each change. The id of
// an event is its revision: a client that reconnects with Last-Event-ID gets what
// it has missed, or the event reset if the changelog no longer has all of it.
//
// Many clients are the normal case. An idle stream costs a connection and about 5
// KiB (core/web/stream). A change is sent over a short time (Config.Spread), the
// retry time of each stream is random, and both keep clients from asking all at
// once, after a change and after a restart. Streams are bounded in total, per
// project and per client address; a client that does not read loses its stream.
// A stop closes the streams at once and does not wait for them.
//
// Delivery is at least once. The package keeps no changes in memory.
package changes

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/changes/changelog"
)

// Log reads the changelog.
type Log interface {
	// Heads returns the newest revisions of the projects that ever had a change.
	Heads(ctx context.Context, projectIDs []int64) (map[int64]changelog.Head, error)
	// Since returns the changes of a project after a revision, oldest first, at
	// most limit. complete is false if older ones are not kept any more.
	Since(ctx context.Context, projectID, revision int64, limit int) (list []changelog.Change, complete bool, err error)
}

// Refresher loads the current definitions of a project into the memory of this
// process.
type Refresher interface {
	Refresh(ctx context.Context, projectID int64) error
}

// Memory is what is refreshed before a change is sent. Nil fields are skipped.
type Memory struct{ Flags, Actions Refresher }

// maxSent is the number of changes that one write to a stream may have. A client
// that has missed more gets an event to load everything.
const maxSent = 200

// storeTimeout bounds a poll and the refresh after it.
const storeTimeout = 10 * time.Second
