package flags

import (
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/fields"
	"github.com/guidonhq/guidon/core/flags/rules"
)

// checkBucketing fails if a flag keeps the identifier of a person and buckets by
// device: only one of them can decide.
func (f *Fields) checkBucketing() error {
	if f.Bucketing == fields.ByDevice && f.ExperienceContinuity {
		return fault.New(fault.Invalid, rules.CodeInvalid,
			"A flag that buckets by device_id cannot ensure experience continuity: the device keeps its value at login.")
	}
	return nil
}

// setDefaults sets fields that versions of older servers do not have.
func (f *Fields) setDefaults() {
	if f.Bucketing == "" {
		f.Bucketing = fields.ByDistinctID
	}
	if f.Runtime == "" {
		f.Runtime = eval.AnyRuntime.String()
	}
	if f.Contexts == nil {
		f.Contexts = []string{}
	}
}
