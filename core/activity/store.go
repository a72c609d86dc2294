package activity

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/activity/chain"
	"github.com/guidonhq/guidon/core/changes/changelog"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/web"
)

// Log stores the entries of all features.
type Log struct {
	db      *db.DB
	changes *changelog.Store
}

// NewLog returns the log in d.
func NewLog(d *db.DB) *Log { return &Log{db: d, changes: changelog.NewStore(d)} }

// Add writes an entry, and records the change for clients that follow changes. It
// belongs in the transaction of the change. An entry without an address gets the one
// of the request in ctx.
func (l *Log) Add(ctx context.Context, e Entry) error {
	if err := l.write(ctx, e); err != nil {
		return err
	}
	return l.record(ctx, e)
}

func (l *Log) write(ctx context.Context, e Entry) error {
	detail, err := jsontext.Marshal(e.Detail)
	if err != nil {
		return fmt.Errorf("log activity: %w", err)
	}
	r := &chain.Row{
		ID: e.ID, ProjectID: e.ProjectID, Scope: string(e.Scope), ItemID: e.ItemID, Activity: e.Activity, UserID: e.UserID,
		UserName: e.UserName, UserEmail: e.UserEmail, Detail: string(detail), CreatedAt: db.At(e.CreatedAt),
		OrganizationID: e.OrganizationID, KeyID: e.KeyID, Client: e.Client, UserAgent: e.UserAgent, RequestID: e.RequestID,
	}
	if origin := web.OriginOf(ctx); r.Client == "" {
		r.Client, r.UserAgent, r.RequestID = origin.Client, origin.UserAgent, origin.RequestID
	}
	if _, err := l.db.Write(ctx).NewInsert().Model(r).Exec(ctx); err != nil {
		return fmt.Errorf("log activity: %w", err)
	}
	web.MarkLogged(ctx)
	return nil
}

// Touch records a change of an item that has no entry, as of the people in a static
// cohort, for clients that follow changes. It belongs in the transaction of the change.
func (l *Log) Touch(ctx context.Context, projectID int64, scope Scope, itemID int64, name string, at time.Time) error {
	return l.changes.Record(ctx, changelog.Change{ProjectID: projectID, At: at, Kind: kinds[scope], ItemID: itemID, Name: name, Operation: changelog.Updated})
}

var kinds = map[Scope]changelog.Kind{Flag: changelog.Flag, Cohort: changelog.Cohort, Action: changelog.Action}

// record adds the change to the changelog. An item that is marked as deleted is
// deleted for those who follow it.
func (l *Log) record(ctx context.Context, e Entry) error {
	kind, ok := kinds[e.Scope]
	if e.Scope == Project && e.Activity == Updated && slices.ContainsFunc(e.Detail.Changes, func(c Change) bool { return c.Field == "timezone" }) {
		return l.changes.Record(ctx, changelog.Change{ProjectID: e.ProjectID, At: e.CreatedAt, Kind: changelog.Project, Operation: changelog.Updated})
	}
	if !ok {
		return nil
	}
	id, err := strconv.ParseInt(e.ItemID, 10, 64)
	if err != nil {
		return fmt.Errorf("log activity: %w", err)
	}
	operation := e.Activity
	for _, c := range e.Detail.Changes {
		if c.Field == "deleted" && string(c.After) == "true" {
			operation = changelog.Deleted
		}
	}
	return l.changes.Record(ctx, changelog.Change{ProjectID: e.ProjectID, At: e.CreatedAt, Kind: kind, ItemID: id, Name: e.Detail.Name, Operation: operation})
}

// Query selects entries of a project or of an organization. Zero values of the other
// fields select everything.
type Query struct {
	ProjectID      int64  // 0 selects those of OrganizationID
	OrganizationID string // of its projects, too
	Server         bool   // with OrganizationID: also what belongs to no organization, and plugins
	Scope          Scope
	ItemID         string
	UserID         int64
	Scopes         []Scope // any of them
	Activity       string
	KeyID          int64
	Client         string
	After, Before  time.Time // from After on, until Before
	Limit          int
	Offset         int
}

// narrow adds the conditions that are rarely used.
func (q *Query) narrow(sel *bun.SelectQuery) *bun.SelectQuery {
	if len(q.Scopes) > 0 {
		sel = sel.Where("scope IN (?)", bun.List(q.Scopes))
	}
	if q.Activity != "" {
		sel = sel.Where("activity = ?", q.Activity)
	}
	if q.KeyID != 0 {
		sel = sel.Where("key_id = ?", q.KeyID)
	}
	if q.Client != "" {
		sel = sel.Where("client = ?", q.Client)
	}
	if !q.After.IsZero() {
		sel = sel.Where("created_at >= ?", db.At(q.After))
	}
	if !q.Before.IsZero() {
		sel = sel.Where("created_at < ?", db.At(q.Before))
	}
	return sel
}

// Find returns the entries of q, newest first, and how many there are without
// its limit.
func (l *Log) Find(ctx context.Context, q Query) ([]Entry, int, error) {
	var rows []chain.Row
	sel := l.db.Read(ctx).NewSelect().Model(&rows)
	if q.ProjectID != 0 {
		sel = sel.Where("project_id = ?", q.ProjectID)
	} else {
		organizations := []string{q.OrganizationID}
		if q.Server {
			organizations = append(organizations, "")
		}
		sel = sel.Where("organization_id IN (?)", bun.List(organizations))
		if !q.Server { // entries of earlier versions have the organization of the operator
			sel = sel.Where("scope <> ?", Plugin)
		}
	}
	if q.Scope != "" {
		sel = sel.Where("scope = ?", q.Scope)
	}
	if q.ItemID != "" {
		sel = sel.Where("item_id = ?", q.ItemID)
	}
	if q.UserID != 0 {
		sel = sel.Where("user_id = ?", q.UserID)
	}
	total, err := q.narrow(sel).OrderExpr("created_at DESC, id DESC").Limit(int64(q.Limit)).Offset(int64(q.Offset)).ScanAndCount(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("read activity: %w", err)
	}
	entries := make([]Entry, len(rows))
	for i := range rows {
		if entries[i], err = entryOf(&rows[i]); err != nil {
			return nil, 0, err
		}
	}
	return entries, int(total), nil
}

func entryOf(r *chain.Row) (Entry, error) {
	e := Entry{
		ID: r.ID, ProjectID: r.ProjectID, Scope: Scope(r.Scope), ItemID: r.ItemID, Activity: r.Activity, UserID: r.UserID,
		UserName: r.UserName, UserEmail: r.UserEmail, CreatedAt: r.CreatedAt.Time,
		OrganizationID: r.OrganizationID, KeyID: r.KeyID, Client: r.Client, UserAgent: r.UserAgent, RequestID: r.RequestID,
		Sequence: r.Sequence, Hash: r.Hash,
	}
	if err := json.Unmarshal([]byte(r.Detail), &e.Detail); err != nil {
		return e, fmt.Errorf("read activity %s: %w", r.ID, err)
	}
	return e, nil
}
