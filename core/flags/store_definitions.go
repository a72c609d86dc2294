package flags

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/fields"
	"github.com/guidonhq/guidon/core/flags/sealed"
)

// Definitions returns the flags that are not deleted, in the form of the evaluator and
// by id: those with the given ids, or all without ids. Encrypted payloads are redacted:
// clients and snapshots get no others.
func (s flagStore) Definitions(ctx context.Context, projectID int64, ids ...int64) ([]eval.Definition, error) {
	var rows []flagRow
	q := s.db.Read(ctx).NewSelect().Model(&rows).
		Column("id", "key", "name", "filters", "active", "experience_continuity", "version",
			"bucketing_identifier", "evaluation_runtime", "evaluation_contexts", "has_encrypted_payloads").
		Where("project_id = ? AND deleted = ?", projectID, false).OrderExpr("id")
	if len(ids) > 0 {
		q.Where("id IN (?)", bun.List(ids))
	}
	err := q.Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read flags of project %d: %w", projectID, err)
	}
	out := make([]eval.Definition, 0, len(rows))
	for _, r := range rows {
		d := eval.Definition{
			ID: r.ID, ProjectID: projectID, Key: r.Key, Name: r.Name, Filters: sealed.Redact(json.RawMessage(r.Filters)),
			Active: r.Active, ExperienceContinuity: r.ExperienceContinuity, Version: r.Version,
			ByDevice: r.BucketingIdentifier == fields.ByDevice, Sealed: r.EncryptedPayloads,
		}
		d.Runtime, _ = eval.ParseRuntime(r.EvaluationRuntime)
		if err := json.Unmarshal([]byte(r.EvaluationContexts), &d.Contexts); err != nil {
			return nil, fmt.Errorf("read contexts of flag %d: %w", r.ID, err)
		}
		out = append(out, d)
	}
	return out, nil
}
