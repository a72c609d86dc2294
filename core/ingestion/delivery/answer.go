package delivery

import (
	"errors"
	"time"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
)

// errStopped means that the delivery stopped before all records were settled.
var errStopped = errors.New("delivery stopped")

// errStagedLost means that the sink was opened again while events from before the
// next record were staged: these must be sent again first.
var errStagedLost = errors.New("staged events are lost")

// Bounds of the pause that a throttling sink asks for.
const (
	minThrottle = 100 * time.Millisecond
	maxThrottle = time.Hour
)

// The codes of a sink whose process did not answer. With codeDied the process
// ended during the call: the batch may be the cause. With codeDown it did not run
// at the time of the call.
const (
	codeDied  = "plugin_unavailable"
	codeDown  = "plugin_not_running"
	codeCrash = "plugin_crash" // of a dead letter
)

// retryState counts the failed attempts for some records.
type retryState struct {
	internal  int  // internal failures of the plugin that are left
	exclusive bool // the records may crash the plugin: nothing else is sent meanwhile
	tries     int  // transient failures
	since     time.Time
	session   uint64 // in which earlier batches are staged; 0 without any
	cautious  bool   // staged events were lost before, perhaps by these records
}

func (t *target) newRetryState() retryState { return retryState{internal: t.cfg.MaxInternal} }

// exhausted counts a transient failure and reports whether it was the last one
// allowed.
func (t *retryState) exhausted(c settings.Retry, now time.Time) bool {
	if t.tries++; t.tries == 1 {
		t.since = now
	}
	return (c.MaxAttempts > 0 && t.tries >= c.MaxAttempts) || (c.MaxAge > 0 && now.Sub(t.since) >= c.MaxAge)
}

// validateAnswer returns the failure that an answer means, nil for none. An
// answer that violates the contract is a transient failure with an empty result:
// the outcome is unknown.
func validateAnswer(b *sdk.Batch, r *sdk.WriteResult, err error) *sdk.Error {
	violation := func(message string) *sdk.Error {
		*r = sdk.WriteResult{}
		return sdk.Errorf(sdk.ClassTransient, "contract_breach", "%s", message).From(sdk.SourcePlugin)
	}
	switch {
	case err != nil:
		*r = sdk.WriteResult{}
		return classify(sdk.AsError(err))
	case r.Outcome == sdk.Committed || r.Outcome == sdk.Staged:
		return nil
	case r.Outcome == sdk.Rejected && r.Err == nil:
		return violation("rejected without a reason")
	case r.Outcome == sdk.Rejected:
		return classify(r.Err)
	case r.Outcome != sdk.Partial:
		return violation("an answer without an outcome")
	}
	seen := make([]bool, len(b.Records))
	for _, f := range r.Failures {
		if f.Index < 0 || f.Index >= len(seen) || seen[f.Index] {
			return violation("failures that are not of this batch")
		}
		seen[f.Index] = true
	}
	if len(r.Failures) == 0 {
		return violation("partial without failures")
	}
	return nil
}

// isPermanent reports whether a retry cannot succeed.
func isPermanent(e *sdk.Error) bool {
	return e.Class == sdk.ClassPermanent || e.Class == sdk.ClassUnsupported
}

// isAnswer reports whether the sink itself failed, not its process or its
// configuration.
func isAnswer(e *sdk.Error) bool {
	return e.Class != sdk.ClassConfig && e.Code != codeDied && e.Code != codeDown
}

// classify makes an error without a class a transient one.
func classify(e *sdk.Error) *sdk.Error {
	if e.Class != sdk.ClassUnspecified {
		return e
	}
	c := *e
	c.Class = sdk.ClassTransient
	return &c
}
