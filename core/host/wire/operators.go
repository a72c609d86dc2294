package wire

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/matchv1"
)

// maxOperators is the largest number of operators of a matcher.
const maxOperators = 1000

var operatorID = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*/[a-z0-9][a-z0-9_-]*$`)

// OperatorsFromProto converts the operators of a matcher. It leaves out unusable ones;
// problems has a message for each.
func OperatorsFromProto(list []*matchv1.Operator) (operators []sdk.Operator, problems []string) {
	seen := map[string]bool{}
	for _, m := range list {
		id := text.Ellipsis(m.GetId(), 100)
		switch {
		case len(operators) == maxOperators:
			return operators, append(problems, fmt.Sprintf("it offers more than %d", maxOperators))
		case !operatorID.MatchString(m.GetId()) || len(m.GetId()) > 100:
			problems = append(problems, fmt.Sprintf("%q is not two lower-case words with a slash between them", id))
			continue
		case seen[id]:
			problems = append(problems, fmt.Sprintf("%q is offered twice", id))
			continue
		}
		if len(m.GetValueSchema()) > 0 && !json.Valid(m.GetValueSchema()) {
			problems = append(problems, fmt.Sprintf("%q has a schema that is not JSON", id))
			continue
		}
		seen[id] = true
		operators = append(operators, operatorFromProto(m))
	}
	return operators, problems
}

func operatorFromProto(m *matchv1.Operator) sdk.Operator {
	o := sdk.Operator{
		ID: m.GetId(), Version: text.Ellipsis(m.GetVersion(), 100), Label: text.Ellipsis(m.GetLabel(), 200), Doc: text.Ellipsis(m.GetDoc(), 10_000),
		ValueSchema: m.GetValueSchema(), PropertyTypes: m.GetPropertyTypes(),
		CacheTTL: ttl(m.GetCacheTtl()), Cost: time.Duration(min(m.GetCostNs(), uint64(time.Minute))), CEL: text.Ellipsis(m.GetEquivalentCel(), 10_000),
	}
	switch m.GetMissing() {
	case matchv1.Operator_MISSING_NO_MATCH:
		o.Missing = sdk.MissingNoMatch
	case matchv1.Operator_MISSING_MATCHES:
		o.Missing = sdk.MissingMatches
	default:
		o.Missing = sdk.MissingFails
	}
	switch m.GetPurity() {
	case matchv1.Operator_PURITY_PURE:
		o.Purity = sdk.Pure
	case matchv1.Operator_PURITY_TIME:
		o.Purity = sdk.TimeDependent
	case matchv1.Operator_PURITY_DATA:
		o.Purity = sdk.DataDependent
	default:
		o.Purity = sdk.Volatile
	}
	for _, e := range m.GetExamples() {
		if len(o.Examples) == 100 || !json.Valid(e.GetValueJson()) || !json.Valid(e.GetPropertyJson()) {
			continue
		}
		example := sdk.OperatorExample{Value: e.GetValueJson(), Property: e.GetPropertyJson()}
		if e.GetResult() > 0 && e.GetResult() <= matchv1.Verdict_VERDICT_FAILED {
			example.Result = sdk.Verdict(e.GetResult())
		}
		if e.GetNowUs() != 0 {
			example.Now = time.UnixMicro(e.GetNowUs()).UTC()
		}
		o.Examples = append(o.Examples, example)
	}
	return o
}
