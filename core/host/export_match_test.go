package host

import (
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
)

// ReadNotify reads a notifier's answer.
func ReadNotify(out *notifyv1.NotifyResponse, items []*sdk.Notification) ([]sdk.NotifyResult, error) {
	results, broken := notifyResults(out, items, nil)
	if broken != nil {
		return results, broken
	}
	return results, nil
}

// ReadVerdicts reads a matcher's answer.
func ReadVerdicts(out *matchv1.MatchBatchResponse, b *MatchBatch) (*MatchAnswer, error) {
	answer, broken := answerFromProto(out, b, nil)
	if broken != nil {
		return answer, broken
	}
	return answer, nil
}

// ReadOperators reads what a matcher offers.
func ReadOperators(out *matchv1.DescribeResponse) []sdk.Operator {
	operators, _ := operatorsFromProto(out.GetOperators())
	return operators
}
