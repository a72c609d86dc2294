package flags

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/schedule"
)

var _ schedule.Flags = (*Service)(nil)

// Schedule runs store in a transaction with payload, the form in which a change of a
// flag is stored: with encrypted payloads if those of the flag are. It fails with
// NotFound for an unknown flag and with Forbidden.
func (e *editor) Schedule(ctx context.Context, who *auth.Principal, project auth.Project, flagID int64, payload json.RawMessage, store func(ctx context.Context, payload json.RawMessage) error) error {
	return e.deps.Revisions.Change(ctx, project.ID, func(ctx context.Context) error {
		f, err := e.store.flag(ctx, project.ID, flagID)
		if err == nil {
			err = e.access.mayEdit(ctx, who, f)
		}
		if err == nil && f.EncryptedPayloads && e.deps.Payloads != nil {
			payload, err = e.deps.Payloads.SealOperation(project.ID, payload)
		}
		if err != nil {
			return err
		}
		return store(ctx, payload)
	})
}

// errStale cancels a change that was prepared from an older version of the flag.
var errStale = errors.New("the flag has changed meanwhile")

// applyAttempts bounds the attempts to apply a scheduled change to a flag that others
// change at the same time.
const applyAttempts = 5

// Apply applies a scheduled operation to a flag, under the rules of Update. The new
// filters are checked and compiled before the transaction, from the version of the
// flag at that time; if it is another one in the transaction, Apply repeats. It fails
// with Unavailable after some attempts. mark runs first in the transaction; its error
// cancels the change. The activity entry names the scheduled change.
func (e *editor) Apply(ctx context.Context, who *auth.Principal, project auth.Project, flagID, changeID int64, op schedule.Operation, mark func(ctx context.Context) error) error {
	trigger := &activity.Trigger{JobType: "scheduled_change", JobID: strconv.FormatInt(changeID, 10), Payload: map[string]any{"operation": op.Kind}}
	for range applyAttempts {
		planned, in, err := e.plan(ctx, project, flagID, op)
		if err != nil {
			return err
		}
		_, err = e.edit(ctx, who, project, flagID, trigger, func(ctx context.Context, f *Flag) error {
			if f.Version != planned {
				return errStale
			}
			if err := mark(ctx); err != nil {
				return err
			}
			return e.fields.apply(ctx, f, in)
		})
		if !errors.Is(err, errStale) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "conflict", "The feature flag changes too often.").Because(errStale)
}

// plan returns what an operation makes of a flag, checked, and the version of the flag.
func (e *editor) plan(ctx context.Context, project auth.Project, flagID int64, op schedule.Operation) (version int64, in Input, err error) {
	f, err := e.store.flag(ctx, project.ID, flagID)
	if err != nil {
		return 0, in, err
	}
	if f.Deleted {
		return 0, in, fault.New(fault.Invalid, "invalid_input", "The feature flag has been deleted.")
	}
	if in.Active, in.Filters, err = op.Change(document.Shown(f.Filters, nil)); err != nil {
		return 0, in, err
	}
	if in.Filters != nil && f.EncryptedPayloads && e.deps.Payloads != nil { // those of the operation are encrypted, too
		if in.Filters, err = e.deps.Payloads.OpenFilters(project.ID, in.Filters, f.Filters); err != nil {
			return 0, in, err
		}
	}
	in.checked = e.fields.check(ctx, f, in.Filters)
	return f.Version, in, nil
}
