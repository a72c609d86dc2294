package flags

import (
	"slices"
	"strings"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/rules"
	"github.com/guidonhq/guidon/core/web"
)

// The identifiers that persons are bucketed by.
const (
	byDistinctID = "distinct_id"
	byDevice     = "device_id"
)

// Limits of evaluation contexts.
const (
	maxContexts     = 50
	maxContextChars = 255
)

// readBucketing reads bucketing_identifier. Null and "" are the distinct id.
func readBucketing(body *web.Fields) *string {
	o := body.String("bucketing_identifier", web.Nullable, web.Blank)
	if !o.Set {
		return nil
	}
	switch o.Value {
	case "":
		o.Value = byDistinctID
	case byDistinctID, byDevice:
	default:
		body.Fail("bucketing_identifier", "invalid_choice", `Must be "distinct_id" or "device_id".`)
	}
	return &o.Value
}

// readRuntime reads evaluation_runtime. Null and "" are all.
func readRuntime(body *web.Fields) *string {
	o := body.String("evaluation_runtime", web.Nullable, web.Blank)
	if !o.Set {
		return nil
	}
	r, ok := eval.ParseRuntime(o.Value)
	if !ok && o.Value != "" {
		body.Fail("evaluation_runtime", "invalid_choice", `Must be "client", "server" or "all".`)
	}
	name := r.String()
	return &name
}

// readContexts reads evaluation_contexts, or one of its older names. Null is none.
func readContexts(body *web.Fields) *[]string {
	for _, name := range []string{"evaluation_contexts", "evaluation_tags", "evaluation_environments"} {
		if o := body.Strings(name, web.Nullable); o.Set {
			return checkedContexts(body, name, o.Value)
		}
	}
	return nil
}

func checkedContexts(body *web.Fields, name string, given []string) *[]string {
	out := []string{}
	for _, context := range given {
		context = strings.TrimSpace(context)
		switch {
		case context == "":
			body.Fail(name, "blank", "A context must not be blank.")
		case len([]rune(context)) > maxContextChars:
			body.Fail(name, "max_length", "A context has at most 255 characters.")
		case !slices.Contains(out, context):
			out = append(out, context)
		}
	}
	if len(out) > maxContexts {
		body.Fail(name, "max_length", "A flag has at most 50 contexts.")
	}
	return &out
}

// checkBucketing fails if a flag keeps the identifier of a person and buckets by
// device: only one of them can decide.
func (f *Fields) checkBucketing() error {
	if f.Bucketing == byDevice && f.ExperienceContinuity {
		return fault.New(fault.Invalid, rules.CodeInvalid,
			"A flag that buckets by device_id cannot ensure experience continuity: the device keeps its value at login.")
	}
	return nil
}

// setDefaults sets fields that versions of older servers do not have.
func (f *Fields) setDefaults() {
	if f.Bucketing == "" {
		f.Bucketing = byDistinctID
	}
	if f.Runtime == "" {
		f.Runtime = eval.AnyRuntime.String()
	}
	if f.Contexts == nil {
		f.Contexts = []string{}
	}
}

// hasLegacyFilters reports whether filters without condition sets have the members
// of the oldest form: the properties and the rollout of the only set.
func hasLegacyFilters(d *document.Object) bool {
	_, properties := d.Get("properties")
	_, rollout := d.Get("rollout_percentage")
	return properties || rollout
}
