package flags

import (
	"context"
	"encoding/json"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/audience"
)

// BlastRadius counts the stored persons, or groups of a type, that match the
// properties of a condition set. It uses the evaluator of flags, with cohorts and
// dependencies. CountBudget bounds its time.
// It fails with Invalid for properties that break the write rules.
func (c *audienceCounter) BlastRadius(ctx context.Context, project auth.Project, properties json.RawMessage, groupIndex *int) (audience.Audience, error) {
	filters := audience.Condition(properties, groupIndex)
	checked, err := c.fields.check(ctx, &Flag{ProjectID: project.ID}, filters).Result()
	if f := fault.From(err); f != nil {
		return audience.Audience{}, f.At("")
	}
	if err != nil {
		return audience.Audience{}, err
	}
	if len(properties) <= len("[]") {
		return c.deps.Audience.CountAll(ctx, project.ID, groupIndex)
	}
	return c.deps.Audience.Count(ctx, project.ID, checked, groupIndex)
}
