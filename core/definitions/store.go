package definitions

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// store is the SQL of the package. Its methods join the transaction in ctx.
type store struct{ db *db.DB }

// row is a row of definitions. It has one field per column.
type row struct {
	bun.BaseModel `bun:"table:definitions,alias:d"`

	ID           string
	ProjectID    int64
	Kind         int64
	GroupIndex   int64
	Name         string
	PropertyType string
	CreatedAt    db.Time
	LastSeenAt   db.Time
	Description  string
	Tags         string
	Hidden       bool
	Verified     bool
	VerifiedAt   db.Time
	VerifiedBy   int64
	UpdatedAt    db.Time
	UpdatedBy    int64
}

// upsertRows is how many names one statement writes.
const upsertRows = 500

// upsert writes names in an order that all nodes share, to avoid deadlocks. A
// stored type stays, and the last-seen time never moves back.
func (s *store) upsert(ctx context.Context, news map[key]*pendingName) error {
	rows := make([]row, 0, len(news))
	for k, n := range news {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		rows = append(rows, row{
			ID: id.String(), ProjectID: k.project, Kind: int64(k.kind), GroupIndex: int64(k.group), Name: k.name,
			PropertyType: n.propertyType, CreatedAt: db.FromMicros(n.created), LastSeenAt: db.FromMicros(n.at * 1e6), Tags: "[]",
		})
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.ProjectID, b.ProjectID), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.GroupIndex, b.GroupIndex), cmp.Compare(a.Name, b.Name))
	})
	for part := range slices.Chunk(rows, upsertRows) {
		_, err := s.db.Write(ctx).NewInsert().Model(&part).
			On("CONFLICT (project_id, kind, group_index, name) DO UPDATE").
			Set("last_seen_at = CASE WHEN excluded.last_seen_at > d.last_seen_at THEN excluded.last_seen_at ELSE d.last_seen_at END").
			Set("property_type = CASE WHEN d.property_type = '' THEN excluded.property_type ELSE d.property_type END").
			Returning("NULL").Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// load reads all names of a project into n.
func (s *store) load(ctx context.Context, projectID int64, n *projectNames) error {
	var rows []row
	err := s.db.Read(ctx).NewSelect().Model(&rows).Column("kind", "group_index", "name", "property_type", "last_seen_at").
		Where("project_id = ?", projectID).Scan(ctx)
	if err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		n.put(key{projectID, Kind(r.Kind), int(r.GroupIndex), r.Name}, nameState{r.LastSeenAt.Unix(), r.PropertyType, r.PropertyType != ""})
	}
	return nil
}

// where adds the conditions of f.
func (f *Filter) where(q *bun.SelectQuery) *bun.SelectQuery {
	q = q.Where("kind = ?", int64(f.Kind))
	for _, word := range strings.Fields(f.Search) {
		q = q.Where("lower(name) LIKE ? ESCAPE '!'", db.Contains(strings.ToLower(word)))
	}
	if f.Kind == GroupProperty && f.GroupIndex != nil {
		q = q.Where("group_index = ?", *f.GroupIndex)
	}
	if f.Names != nil {
		q = q.Where("name IN (?)", bun.List(append(f.Names, ""))) // an empty list is invalid SQL
	}
	if len(f.Without) > 0 {
		q = q.Where("name NOT IN (?)", bun.List(f.Without))
	}
	if f.Types != nil {
		q = q.Where("property_type IN (?)", bun.List(append(f.Types, "?")))
	}
	if f.Numeric != nil {
		q = q.Where("(property_type = ?) = ?", Numeric, *f.Numeric)
	}
	if f.Verified != nil {
		q = q.Where("verified = ?", *f.Verified)
	}
	if f.Hidden != nil {
		q = q.Where("hidden = ?", *f.Hidden)
	}
	if f.System != nil {
		q = q.Where("(name LIKE '$%') = ?", *f.System)
	}
	if f.Flags != nil {
		q = q.Where("(name LIKE '$feature/%') = ?", *f.Flags)
	}
	return q
}

// list returns a page of the project's definitions and their total number.
func (s *store) list(ctx context.Context, projectID int64, f *Filter, limit, offset int) ([]Definition, int, error) {
	var rows []row
	q := f.where(s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ?", projectID))
	count, err := q.Count(ctx)
	if err != nil {
		return nil, 0, err
	}
	direction := bun.Safe("ASC")
	if f.Descending {
		direction = "DESC"
	}
	order := map[Order]string{ByName: "lower(name)", ByLastSeen: "last_seen_at", ByCreated: "created_at", ByVerified: "verified", ByType: "property_type"}[f.Order]
	err = q.OrderExpr("? ?, lower(name), name, group_index", bun.Safe(order), direction).Limit(int64(limit)).Offset(int64(offset)).Scan(ctx)
	if err != nil {
		return nil, 0, err
	}
	out := make([]Definition, len(rows))
	for i := range rows {
		out[i] = rows[i].definition()
	}
	return out, int(count), nil
}

// get reads a definition by id, or by name if id is empty: that of an event,
// or that of a property.
func (s *store) get(ctx context.Context, projectID int64, event bool, id, name string) (Definition, error) {
	var rows []row
	q := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ? AND (kind = 0) = ?", projectID, event)
	if id != "" {
		q = q.Where("id = ?", id)
	} else {
		q = q.Where("name = ?", name)
	}
	if err := q.Limit(1).Scan(ctx); err != nil {
		return Definition{}, err
	}
	if len(rows) == 0 {
		return Definition{}, errNotFound
	}
	return rows[0].definition(), nil
}

// annotate writes the annotation of d, and its type.
func (s *store) annotate(ctx context.Context, d *Definition) error {
	tags, err := json.Marshal(d.Tags)
	if err != nil {
		return err
	}
	r := row{
		ID: d.ID, PropertyType: d.PropertyType, Description: d.Description, Tags: string(tags), Hidden: d.Hidden, Verified: d.Verified,
		VerifiedAt: db.At(d.VerifiedAt), VerifiedBy: d.VerifiedBy, UpdatedAt: db.At(d.UpdatedAt), UpdatedBy: d.UpdatedBy,
	}
	_, err = s.db.Write(ctx).NewUpdate().Model(&r).
		Column("property_type", "description", "tags", "hidden", "verified", "verified_at", "verified_by", "updated_at", "updated_by").
		Where("id = ?", d.ID).Exec(ctx)
	return err
}

func (s *store) remove(ctx context.Context, id string) error {
	_, err := s.db.Write(ctx).NewDelete().Model((*row)(nil)).Where("id = ?", id).Exec(ctx)
	return err
}

// removeGroups deletes the group properties of types that are not listed.
func (s *store) removeGroups(ctx context.Context, projectID int64, kept []int) error {
	_, err := s.db.Write(ctx).NewDelete().Model((*row)(nil)).
		Where("project_id = ? AND kind = ? AND group_index NOT IN (?)", projectID, int64(GroupProperty), bun.List(append(kept, noGroup))).Exec(ctx)
	return err
}

func (r *row) definition() Definition {
	d := Definition{
		ID: r.ID, Kind: Kind(r.Kind), GroupIndex: int(r.GroupIndex), Name: r.Name, PropertyType: r.PropertyType,
		CreatedAt: r.CreatedAt.Time, LastSeenAt: r.LastSeenAt.Time,
		Annotation: Annotation{
			Description: r.Description, Hidden: r.Hidden, Verified: r.Verified, VerifiedAt: r.VerifiedAt.Time,
			VerifiedBy: r.VerifiedBy, UpdatedAt: r.UpdatedAt.Time, UpdatedBy: r.UpdatedBy,
		},
	}
	if json.Unmarshal([]byte(r.Tags), &d.Tags) != nil || d.Tags == nil {
		d.Tags = []string{}
	}
	return d
}
