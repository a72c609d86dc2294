// Package fields reads single fields of a flag from the body of a request. Each
// function marks an invalid field and returns nil for one that was not sent.
package fields

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/rules"
	"github.com/guidonhq/guidon/core/web"
)

// The identifiers that persons are bucketed by.
const (
	ByDistinctID = "distinct_id"
	ByDevice     = "device_id"
)

// Limits of evaluation contexts.
const (
	maxContexts     = 50
	maxContextChars = 255
)

// Bucketing reads bucketing_identifier. Null and "" are the distinct id.
func Bucketing(body *web.Fields) *string {
	o := body.String("bucketing_identifier", web.Nullable, web.Blank)
	if !o.Set {
		return nil
	}
	switch o.Value {
	case "":
		o.Value = ByDistinctID
	case ByDistinctID, ByDevice:
	default:
		body.Fail("bucketing_identifier", "invalid_choice", `Must be "distinct_id" or "device_id".`)
	}
	return &o.Value
}

// Runtime reads evaluation_runtime. Null and "" are all.
func Runtime(body *web.Fields) *string {
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

// Contexts reads evaluation_contexts, or one of its older names. Null is none.
func Contexts(body *web.Fields) *[]string {
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

// RollbackConditions reads rollback conditions. They are stored and not evaluated.
func RollbackConditions(body *web.Fields) json.RawMessage {
	o := body.Any("rollback_conditions", web.Nullable)
	switch {
	case !o.Set:
		return nil
	case o.Null:
		return json.RawMessage("null")
	case !document.StartsWith(o.Value, '{') && !document.StartsWith(o.Value, '['):
		body.Fail("rollback_conditions", rules.CodeInvalid, "Must be an object, a list or null.")
	}
	return bytes.ToValidUTF8(o.Value, []byte(string(utf8.RuneError)))
}

// DashboardIDs reads the ids of dashboards, each once.
func DashboardIDs(body *web.Fields) *[]int64 {
	o := body.List("analytics_dashboards")
	if !o.Set || o.Null {
		return nil
	}
	out := []int64{}
	seen := map[int64]bool{}
	for _, raw := range o.Value {
		id, ok := document.Integer(raw)
		if !ok {
			body.Fail("analytics_dashboards", "incorrect_type", "Incorrect type. Expected pk value, received "+document.KindOf(raw)+".")
		}
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return &out
}
