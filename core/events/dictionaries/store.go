package dictionaries

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/rowcodec"
)

// dictionaryRow is a row of event_dictionaries.
type dictionaryRow struct {
	bun.BaseModel `bun:"table:event_dictionaries"`

	ID        int64 `bun:",pk,autoincrement"`
	ProjectID int64
	Codec     string
	Content   []byte
	Checksum  []byte // SHA-256 of the content
	MadeAt    db.Time
}

// codec is the name of package rowcodec in the table.
const codec = "s2"

func newRow(projectID int64, content []byte) *dictionaryRow {
	sum := sha256.Sum256(content)
	return &dictionaryRow{ProjectID: projectID, Codec: codec, Content: content, Checksum: sum[:], MadeAt: db.At(time.Now())}
}

// dictionary returns the dictionary of the row. It fails with rowcodec.ErrDamaged if the
// content is not what was stored.
func (r *dictionaryRow) dictionary() (*rowcodec.Dictionary, error) {
	if sum := sha256.Sum256(r.Content); r.Codec != codec || !bytes.Equal(sum[:], r.Checksum) {
		return nil, fmt.Errorf("%w: the content of dictionary %d is damaged", rowcodec.ErrDamaged, r.ID)
	}
	d, err := rowcodec.NewDictionary(r.ID, r.Content)
	if err != nil {
		return nil, fmt.Errorf("dictionary %d: %w", r.ID, err)
	}
	return d, nil
}

func (s *Store) readNewest(ctx context.Context, projectID int64) (*dictionaryRow, error) {
	if s.db.Postgres() {
		return nil, nil
	}
	return one(ctx, s.db.Lookup(ctx).NewSelect().Model((*dictionaryRow)(nil)).Where("project_id = ?", projectID).Order("id DESC").Limit(1))
}

func (s *Store) read(ctx context.Context, id int64) (*dictionaryRow, error) {
	return one(ctx, s.db.Lookup(ctx).NewSelect().Model((*dictionaryRow)(nil)).Where("id = ?", id))
}

// one returns the row of a query, nil without one.
func one(ctx context.Context, q *bun.SelectQuery) (*dictionaryRow, error) {
	row := &dictionaryRow{}
	err := q.Scan(ctx, row)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return row, nil
}

func (s *Store) insert(ctx context.Context, row *dictionaryRow) error {
	_, err := s.db.Write(ctx).NewInsert().Model(row).Returning("id").Exec(ctx)
	return err
}
