// Package listing serves two lists of flags to client libraries: the active flags
// as libraries before mid-2022 load them for local evaluation, and the early access
// features in which visitors of a site enroll themselves.
//
// An early access feature is a flag that people can enroll in: its filters have
// super_groups or feature_enrollment. There is no resource of its own: the flag has
// the name and the key. Both lists are read from memory.
package listing

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/eval"
)

// flagView is a flag for a library before mid-2022. It evaluates a simple flag by
// the rollout percentage, and asks the server for others.
type flagView struct {
	ID                int64           `json:"id"`
	Name              string          `json:"name"`
	Key               string          `json:"key"`
	Filters           json.RawMessage `json:"filters"`
	Deleted           bool            `json:"deleted"`
	Active            bool            `json:"active"`
	IsSimpleFlag      bool            `json:"is_simple_flag"`
	RolloutPercentage *int64          `json:"rollout_percentage"`
}

// remoteOnly are the filters that decide a flag beside its condition sets: the
// libraries do not know them.
var remoteOnly = []string{"super_groups", "feature_enrollment", "holdout", "holdout_groups", "aggregation_group_type_index", "multivariate"}

// activeFlags returns the active flags in the order of their ids.
func activeFlags(d eval.ProjectDefinitions) []flagView {
	out := []flagView{}
	for _, f := range d.Flags {
		if f.Deleted || !f.Active {
			continue
		}
		filters, err := document.Normalized(f.Filters)
		if err != nil {
			continue
		}
		v := flagView{ID: f.ID, Name: f.Name, Key: f.Key, Filters: filters, Active: true}
		v.IsSimpleFlag, v.RolloutPercentage = document.SimpleRollout(filters)
		// Continuity and the other conditions are for the server only.
		if f.ExperienceContinuity || hasAny(filters, remoteOnly) || !wholeRollout(filters) {
			v.IsSimpleFlag = false
		}
		out = append(out, v)
	}
	return out
}

// wholeRollout reports whether the rollout of the first condition set is a whole
// percentage: rollout_percentage has no fraction.
func wholeRollout(filters json.RawMessage) bool {
	var d struct {
		Groups []struct {
			Rollout *float64 `json:"rollout_percentage"`
		} `json:"groups"`
	}
	if json.Unmarshal(filters, &d) != nil || len(d.Groups) == 0 {
		return false
	}
	rollout := d.Groups[0].Rollout
	return rollout == nil || *rollout == math.Trunc(*rollout)
}

// featureView is an early access feature as posthog-js lists it.
type featureView struct {
	ID               string   `json:"id"`
	Name             string   `json:"name"`
	Description      string   `json:"description"`
	Stage            string   `json:"stage"`
	DocumentationURL *string  `json:"documentationUrl"`
	Payload          struct{} `json:"payload"`
	FlagKey          string   `json:"flagKey"`
}

// stageBeta is the stage of every feature: one that people may enroll in.
const stageBeta = "beta"

// features returns the early access features in the order of the ids of their flags.
func features(d eval.ProjectDefinitions) []featureView {
	out := []featureView{}
	for _, f := range d.Flags {
		if f.Deleted || !f.Active || !hasAny(f.Filters, []string{"super_groups", "feature_enrollment"}) {
			continue
		}
		name := f.Name
		if name == "" {
			name = f.Key
		}
		out = append(out, featureView{ID: strconv.FormatInt(f.ID, 10), Name: name, Stage: stageBeta, FlagKey: f.Key})
	}
	return out
}

// hasAny reports whether filters have one of the names with a value that is neither
// null, false nor an empty list.
func hasAny(filters json.RawMessage, names []string) bool {
	d, err := document.Parse(filters)
	if err != nil {
		return false
	}
	for _, name := range names {
		raw, ok := d.Given(name)
		if list, err := document.ParseList(raw); ok && string(raw) != "false" && (err != nil || len(list) > 0) {
			return true
		}
	}
	return false
}
