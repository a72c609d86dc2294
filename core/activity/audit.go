package activity

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
)

// CommandLine stands for changes by commands on the machine of the server.
var CommandLine = &auth.Principal{User: auth.User{FirstName: "command line"}}

// Event is what was done to an item.
type Event struct {
	Scope          Scope
	ItemID         string
	Activity       string
	Name           string // of the item
	ProjectID      int64  // 0 for what belongs to no project
	OrganizationID string // "": that of the principal, or none for a Plugin
	Before, After  any    // states as structs with JSON names; nil is no state
}

func (e *Event) entry(who *auth.Principal) Entry {
	out := Entry{
		ID: uuid.Must(uuid.NewV7()).String(), ProjectID: e.ProjectID, OrganizationID: e.OrganizationID, Scope: e.Scope, ItemID: e.ItemID,
		Activity: e.Activity, CreatedAt: time.Now().UTC(), Detail: Detail{Name: e.Name, Changes: []Change{}},
	}
	if changes := Diff(e.Scope, stateOf(e.Before), stateOf(e.After)); changes != nil {
		out.Detail.Changes = changes
	}
	if who != nil {
		out.UserID, out.UserName, out.UserEmail, out.KeyID = who.User.ID, who.User.FirstName, who.User.Email, who.KeyID
		if out.OrganizationID == "" && e.Scope != Plugin { // plugins belong to the server
			out.OrganizationID = who.OrganizationID
		}
	}
	return out
}

// stateOf returns the state, an object without fields for nil.
func stateOf(state any) any {
	if state == nil {
		return struct{}{}
	}
	return state
}

// Audit writes changes together with their entries. A nil *Audit writes no entries, nor
// does one on a server that only reads the database: what can be done there, such as a
// restart of a plugin, leaves the line of its request in the log of the server.
type Audit struct {
	db  *db.DB
	log *Log
}

// NewAudit returns the Audit of the log in d.
func NewAudit(d *db.DB) *Audit { return &Audit{d, NewLog(d)} }

// Change calls do, which makes a change, in a transaction with the entry that do
// returns. A change that fails has no entry, and a failed entry undoes the change. A
// nil event is no change. do must not wait for other writers of the database. It
// fails with the errors of do, and with Unavailable if the database is away.
func (a *Audit) Change(ctx context.Context, who *auth.Principal, do func(ctx context.Context) (*Event, error)) error {
	if a == nil || a.db.ReadOnly {
		_, err := do(ctx)
		return err
	}
	return db.Away(a.db.Tx(ctx, func(ctx context.Context) error {
		e, err := do(ctx)
		if err != nil || e == nil {
			return err
		}
		return a.log.Add(ctx, e.entry(who))
	}))
}

// Add adds the entry of a change to the transaction of ctx.
func (a *Audit) Add(ctx context.Context, who *auth.Principal, e *Event) error {
	if a == nil {
		return nil
	}
	return a.log.Add(ctx, e.entry(who))
}

// Log returns the log; nil for a nil Audit.
func (a *Audit) Log() *Log {
	if a == nil {
		return nil
	}
	return a.log
}

type attachedKey struct{}

// attached is an entry that waits for the transaction of its change.
type attached struct {
	log   *Log
	entry Entry
}

// Attach returns a context with the entry of an event. The transaction that makes the
// change adds it with AddAttached. It is for changes that outlast their transaction.
func (a *Audit) Attach(ctx context.Context, who *auth.Principal, e *Event) context.Context {
	if a == nil {
		return ctx
	}
	return context.WithValue(ctx, attachedKey{}, &attached{a.log, e.entry(who)})
}

// AddAttached adds the entry that Attach put into the context, if any, in the
// transaction of the context.
func AddAttached(ctx context.Context) error {
	a, _ := ctx.Value(attachedKey{}).(*attached)
	if a == nil {
		return nil
	}
	return a.log.Add(ctx, a.entry)
}
