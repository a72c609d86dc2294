package decide

import (
	"context"

	"github.com/guidonhq/guidon/core/flags/eval"
)

// Begin returns an evaluation of the flags of a project, and their set. The
// caller describes the request, calls Finish, reads the results and calls
// Release. Begin and Finish are for protocols that write the answer themselves.
func (d *Decider) Begin(projectID int64, distinctID string) (*eval.Evaluation, *eval.Set) {
	set := d.snapshots.Set(projectID)
	return eval.NewEvaluation(set, distinctID, d.now()), set
}

// Finish decides the selected flags of e, with the stored data that they need.
func (d *Decider) Finish(ctx context.Context, projectID int64, e *eval.Evaluation) {
	d.run(ctx, projectID, e)
}
