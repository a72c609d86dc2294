// Package schedule changes feature flags at a time in the future.
//
// A scheduled change is a row with an operation and a value. The runner looks for
// due rows and applies each one as the user who scheduled it, with the rights that
// this user has then: a user who may no longer edit the flag no longer changes it.
// The row is marked in the transaction of the change, so a change is applied once,
// also with several nodes and after a crash. A change that breaks a rule is marked
// with the reason; one that fails because the database is away is tried again.
//
// The payloads of a change are encrypted if those of the flag are, and redacted in
// what HTTP shows.
//
// The package does not know the rules of flags; it calls Flags.
package schedule

import (
	"context"
	"encoding/json"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
)

// Change is a scheduled change of a flag.
type Change struct {
	ID            int64
	ProjectID     int64
	FlagID        int64
	Payload       json.RawMessage // the Operation as a JSON object
	ScheduledAt   time.Time
	ExecutedAt    time.Time // zero: not yet
	FailureReason string    // why it was not applied at ExecutedAt
	CreatedBy     int64
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// Operation is what a change does.
type Operation struct {
	Kind  Kind            `json:"operation"`
	Value json.RawMessage `json:"value"`
}

// Kind is the kind of an operation.
type Kind string

// The kinds of operations.
const (
	UpdateStatus        Kind = "update_status"         // the value is the new active
	AddReleaseCondition Kind = "add_release_condition" // an object with groups, added to those of the flag
	UpdateVariants      Kind = "update_variants"       // an object with variants and payloads
)

// Flags changes flags.
type Flags interface {
	// MayEdit fails with NotFound for an unknown flag, and with Forbidden.
	MayEdit(ctx context.Context, who *auth.Principal, project auth.Project, id int64) error
	// Schedule runs store in a transaction with the form in which the payload of a
	// change is stored. It fails like MayEdit.
	Schedule(ctx context.Context, who *auth.Principal, project auth.Project, flagID int64, payload json.RawMessage, store func(ctx context.Context, payload json.RawMessage) error) error
	// Apply applies an operation to a flag in one transaction that runs mark first.
	Apply(ctx context.Context, who *auth.Principal, project auth.Project, flagID, changeID int64, op Operation, mark func(ctx context.Context) error) error
}

// Accounts reads users and projects.
type Accounts interface {
	UsersByID(ctx context.Context, ids []int64) (map[int64]auth.User, error)
	Members(ctx context.Context, organizationID string) ([]auth.Member, error)
	Project(ctx context.Context, id int64) (auth.Project, error)
}

// errPayload is the answer to an operation that cannot be read.
func errPayload(detail string) error { return fault.Field("payload", "invalid_input", detail) }

// readOperation reads and checks an operation.
func readOperation(payload json.RawMessage) (op Operation, err error) {
	if json.Unmarshal(payload, &op) != nil {
		return op, errPayload("Payload must be an object with an operation and a value.")
	}
	switch op.Kind {
	case UpdateStatus:
		var active *bool
		if json.Unmarshal(op.Value, &active) != nil || active == nil {
			return op, errPayload("The value of update_status must be a boolean.")
		}
	case AddReleaseCondition:
		var v struct{ Groups []json.RawMessage }
		if json.Unmarshal(op.Value, &v) != nil || len(v.Groups) == 0 {
			return op, errPayload("The value of add_release_condition must be an object with groups.")
		}
	case UpdateVariants:
		var v struct{ Variants []json.RawMessage }
		if json.Unmarshal(op.Value, &v) != nil || v.Variants == nil {
			return op, errPayload("The value of update_variants must be an object with variants.")
		}
	default:
		return op, errPayload("Invalid operation. Must be one of: update_status, add_release_condition, update_variants.")
	}
	return op, nil
}

// Change returns what the operation makes of a flag with the filters: the new active,
// or the new filters; the other one is nil.
func (op *Operation) Change(filters json.RawMessage) (active *bool, changed json.RawMessage, err error) {
	if op.Kind == UpdateStatus {
		err = json.Unmarshal(op.Value, &active)
		return active, nil, err
	}
	var document, value map[string]json.RawMessage
	if err := json.Unmarshal(filters, &document); err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(op.Value, &value); err != nil {
		return nil, nil, err
	}
	if op.Kind == AddReleaseCondition {
		err = op.addGroups(document, value)
	} else {
		document["multivariate"], err = json.Marshal(map[string]json.RawMessage{"variants": value["variants"]})
		if payloads, ok := value["payloads"]; ok {
			document["payloads"] = payloads
		}
	}
	if err != nil {
		return nil, nil, err
	}
	changed, err = json.Marshal(document)
	return nil, changed, err
}

func (*Operation) addGroups(document, value map[string]json.RawMessage) error {
	var groups, more []json.RawMessage
	if err := json.Unmarshal(document["groups"], &groups); err != nil {
		return err
	}
	if err := json.Unmarshal(value["groups"], &more); err != nil {
		return err
	}
	var err error
	document["groups"], err = json.Marshal(append(groups, more...))
	return err
}
