package flagstest

import (
	"encoding/json"
	"time"

	"github.com/guidonhq/guidon/core/flags/eval"
)

// Now is the time at which tests evaluate flags.
var Now = time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)

// Parts of filters.
const (
	// Everyone is a condition set that includes everyone.
	Everyone = `{"properties":[],"rollout_percentage":100}`
	// NoOne is a condition set that includes no one.
	NoOne = `{"properties":[],"rollout_percentage":0}`
	// Variants is a member of filters with two equal variants.
	Variants = `"multivariate":{"variants":[{"key":"control","rollout_percentage":50},{"key":"blue","rollout_percentage":50}]}`
)

// Define returns an active flag of project 1.
func Define(id int64, key, filters string) eval.Definition {
	return eval.Definition{ID: id, ProjectID: 1, Key: key, Filters: json.RawMessage(filters), Active: true, Version: 1}
}

// DependsOn returns filters that require a value of the flag with an id.
func DependsOn(id, value string) string {
	return `{"groups":[{"properties":[{"key":"` + id + `","type":"flag","operator":"flag_evaluates_to","value":` + value + `}]}]}`
}

// InCohort returns filters that test membership of a cohort.
func InCohort(id, operator string) string {
	return `{"groups":[{"properties":[{"key":"id","type":"cohort","value":` + id + `,"operator":"` + operator + `"}]}]}`
}
