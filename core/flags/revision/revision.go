// Package revision counts the changes of the definitions that a project's flags
// are evaluated with.
//
// Every project has one number, which grows with each write to its flags,
// cohorts or group types. Processes poll the numbers and load the projects whose
// number changed (core/snapshot). The row of the number is also the lock of the
// project: Change advances it first, so that two writers of one project run one
// after the other, and the rules of a write see all earlier writes.
//
// The package does not know flags or cohorts.
package revision

import (
	"context"

	"go.uber.org/zap"
)

// Refresher loads the current definitions of a project into memory.
type Refresher interface {
	Refresh(ctx context.Context, projectID int64) error
}

// Writer changes definitions in the store, and then refreshes the memory of this
// process. It is safe for concurrent use.
type Writer struct {
	*Store
	memory Refresher
	log    *zap.Logger
}

// NewWriter returns a writer. A nil log disables logging.
func NewWriter(store *Store, memory Refresher, log *zap.Logger) *Writer {
	if log == nil {
		log = zap.NewNop()
	}
	return &Writer{Store: store, memory: memory, log: log.Named("flags")}
}

// ChangeAndRefresh is Change, and then refreshes the memory of this process. A
// failed refresh is logged and is no error: the change is committed, and memory
// follows by polling.
func (w *Writer) ChangeAndRefresh(ctx context.Context, projectID int64, fn func(ctx context.Context) error) error {
	if err := w.Change(ctx, projectID, fn); err != nil {
		return err
	}
	w.Refresh(ctx, projectID)
	return nil
}

// Refresh refreshes the memory of this process and logs a failure.
func (w *Writer) Refresh(ctx context.Context, projectID int64) {
	if err := w.memory.Refresh(context.WithoutCancel(ctx), projectID); err != nil {
		w.log.Warn("flag refresh failed: memory is behind the store", zap.Int64("project_id", projectID), zap.Error(err))
	}
}
