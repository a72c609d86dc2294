package flags

import (
	"context"
	"strconv"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/schedule"
)

var _ schedule.Flags = (*Service)(nil)

// Apply applies a scheduled operation to a flag, under the rules of Update. mark runs
// first in the transaction; its error cancels the change. The activity entry names
// the scheduled change.
func (e *editor) Apply(ctx context.Context, who *auth.Principal, project auth.Project, flagID, changeID int64, op schedule.Operation, mark func(ctx context.Context) error) error {
	trigger := &activity.Trigger{JobType: "scheduled_change", JobID: strconv.FormatInt(changeID, 10), Payload: map[string]any{"operation": op.Kind}}
	_, err := e.edit(ctx, who, project, flagID, trigger, func(ctx context.Context, f *Flag) error {
		if err := mark(ctx); err != nil {
			return err
		}
		if f.Deleted {
			return fault.New(fault.Invalid, "invalid_input", "The feature flag has been deleted.")
		}
		var in Input
		var err error
		if in.Active, in.Filters, err = op.Change(document.Shown(f.Filters, nil)); err != nil {
			return err
		}
		in.checked = e.fields.check(ctx, f, in.Filters)
		return e.fields.apply(ctx, f, in)
	})
	return err
}
