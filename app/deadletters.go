package app

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/activity/chain"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"

	"github.com/guidonhq/guidon/core/db"
)

// DeadLetter is an event that the worker or a sink rejected for good.
type DeadLetter = deadletter.Entry

// DeadLetterFilter selects dead letters of a project. Zero fields do not filter.
type DeadLetterFilter = deadletter.Filter

// DeadLetters gives one command of the command line access to the dead letters
// of a database, with or without a running server. A replay is carried out by
// the server that runs on the same database, or by the next one to start.
type DeadLetters struct {
	*deadletter.Service
	db *db.DB
}

// OpenDeadLetters opens the database named by cfg. It fails with the errors of
// db.OpenExisting unless the database exists and has the schema of this binary.
func OpenDeadLetters(ctx context.Context, cfg Config) (*DeadLetters, error) {
	d, err := openDB(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &DeadLetters{Service: deadletter.NewService(d, cfg.Ingestion.Limits, nil), db: d}, nil
}

// Close seals the entries of the changes and closes the database.
func (d *DeadLetters) Close() error {
	_ = chain.New(d.db).SealAll(context.Background()) // else the server does
	return d.db.Close()
}

// log adds what the command line did to dead letters to the activity log. id 0 is a
// selection of them.
func (d *DeadLetters) log(ctx context.Context, project, id int64, done string, after any) error {
	return activity.NewAudit(d.db).Change(ctx, activity.CommandLine, func(context.Context) (*activity.Event, error) {
		return &activity.Event{Scope: "DeadLetter", ItemID: activity.ItemID(id), Activity: done, ProjectID: project, After: after}, nil
	})
}

// selected is a number of dead letters in the activity log.
type selected struct {
	Matched int `json:"matched"`
}

// Edit is deadletter.Service.Edit with an entry of the activity log.
func (d *DeadLetters) Edit(ctx context.Context, project, id int64, patch []byte) (DeadLetter, error) {
	e, err := d.Service.Edit(ctx, project, id, patch)
	if err == nil {
		err = d.log(ctx, project, id, activity.Updated, nil)
	}
	return e, err
}

// Delete is deadletter.Service.Delete with an entry of the activity log.
func (d *DeadLetters) Delete(ctx context.Context, project int64, f DeadLetterFilter, dryRun bool) (deadletter.DeleteResult, error) {
	out, err := d.Service.Delete(ctx, project, f, dryRun)
	if err == nil && !dryRun {
		err = d.log(ctx, project, 0, activity.Deleted, selected{out.Matched})
	}
	return out, err
}

// Replay is deadletter.Service.Replay with an entry of the activity log.
func (d *DeadLetters) Replay(ctx context.Context, project int64, f DeadLetterFilter, dryRun bool, wait time.Duration) (deadletter.ReplayResult, error) {
	out, err := d.Service.Replay(ctx, project, f, dryRun, wait)
	if err == nil && !dryRun {
		err = d.log(ctx, project, 0, "replay", selected{out.Matched})
	}
	return out, err
}
