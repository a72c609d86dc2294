package wire

import (
	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/queryv1alpha1"
)

// QueryToProto converts a query.
func QueryToProto(q *sdk.ActionQuery) *queryv1alpha1.ActionQuery {
	out := &queryv1alpha1.ActionQuery{
		ProjectId: q.ProjectID, FromUs: q.From.UnixMicro(), ToUs: q.To.UnixMicro(), MinSeq: q.MinSeq, MaxRowsScanned: q.MaxRowsScanned,
	}
	for _, s := range q.Steps {
		step := &queryv1alpha1.Step{Event: s.Event}
		for _, p := range s.AllOf {
			step.AllOf = append(step.AllOf, &queryv1alpha1.Predicate{Field: p.Field, Operator: p.Operator, ValueJson: p.Value})
		}
		out.Steps = append(out.Steps, step)
	}
	return out
}

// PredicatesFromProto converts predicates.
func PredicatesFromProto(list []*queryv1alpha1.Predicate) []sdk.Predicate {
	var out []sdk.Predicate
	for _, p := range list {
		out = append(out, sdk.Predicate{Field: text.Ellipsis(p.GetField(), 400), Operator: text.Ellipsis(p.GetOperator(), 100), Value: p.GetValueJson()})
	}
	return out
}
