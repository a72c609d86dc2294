// Package explanation has the JSON form of the steps that led to the value of a flag.
package explanation

import (
	"encoding/json"
)

// Explanation lists the steps that led to the value of a flag. The evaluator
// writes it during the evaluation.
type Explanation struct {
	ID       int64   `json:"id"`
	Key      string  `json:"key"`
	Version  int64   `json:"version"`
	Computed bool    `json:"computed"`          // false: the flag is left out of answers
	Failure  string  `json:"failure,omitempty"` // the cause if not computed
	Value    any     `json:"value"`             // true, false, a variant key, or null
	Payload  *string `json:"payload"`
	Reason   *Reason `json:"reason"`
	// Bucketing is distinct_id or device_id. Served is false if the answer of
	// the request leaves the flag out: it is inactive, or for another runtime or
	// other contexts.
	Bucketing  string         `json:"bucketing_identifier"`
	Runtime    string         `json:"evaluation_runtime"`
	Contexts   []string       `json:"evaluation_contexts"`
	Served     bool           `json:"served"`
	Subject    string         `json:"subject"` // person, or a group type
	Identifier Identifier     `json:"identifier"`
	Gates      []Gate         `json:"gates"` // in order; the last one decided
	Conditions []Set          `json:"conditions"`
	Variant    *Variant       `json:"variant"`
	DependsOn  []*Explanation `json:"depends_on"` // explanations of the flags it depends on
}

// Reason is the reason in answers to clients.
type Reason struct {
	Code        string `json:"code"`
	Condition   *int   `json:"condition_index"`
	Description string `json:"description"`
}

// Identifier is the identifier that the flag hashes.
type Identifier struct {
	Value  string `json:"value"`
	Source string `json:"source"` // distinct_id, device_id, anon_distinct_id, hash_key_override, group_key or none
}

// Gate is one step of the decision.
type Gate struct {
	Name       string          `json:"name"`   // active, contexts, definition, enrolment, holdout, conditions
	Result     string          `json:"result"` // passed, decided, or failed
	Detail     string          `json:"detail,omitempty"`
	Property   string          `json:"property,omitempty"`
	Seen       json.RawMessage `json:"seen,omitempty"`
	Hidden     bool            `json:"hidden,omitempty"` // Seen is removed, see HideStored
	Identifier string          `json:"identifier,omitempty"`
	Hash       *float64        `json:"hash,omitempty"`
	Threshold  *float64        `json:"threshold,omitempty"`
}

// Set is one condition set.
type Set struct {
	Index      int      `json:"index"`
	Subject    string   `json:"subject"`
	Result     string   `json:"result"` // true, false, unknown, or not_reached
	Reason     string   `json:"reason,omitempty"`
	Filters    []Filter `json:"filters"`
	Rollout    *float64 `json:"rollout_percentage"`
	Identifier string   `json:"identifier,omitempty"`
	Hash       *float64 `json:"hash,omitempty"`
	Threshold  *float64 `json:"threshold,omitempty"`
	Variant    string   `json:"variant,omitempty"` // override for those who match
}

// Filter is one filter of a set.
type Filter struct {
	Key      string          `json:"key"`
	Type     string          `json:"type"`
	Operator string          `json:"operator"`
	Expected json.RawMessage `json:"expected"`
	Seen     json.RawMessage `json:"seen"`             // null when missing
	Hidden   bool            `json:"hidden,omitempty"` // Seen is removed, see HideStored
	Source   string          `json:"source"`           // override, location, stored, missing, identity, several, cohort, flag, or unreadable
	Plugin   string          `json:"plugin,omitempty"` // the plugin instance of the operator
	Negated  bool            `json:"negated,omitempty"`
	Result   string          `json:"result"`
	Why      string          `json:"why,omitempty"`     // the cause of an unknown result
	Within   []Filter        `json:"filters,omitempty"` // of a cohort
}

// Variant explains the choice of the variant.
type Variant struct {
	Key       string     `json:"key"`
	Override  bool       `json:"override"`
	Hash      *float64   `json:"hash,omitempty"`
	Intervals []Interval `json:"intervals"`
}

// Interval is the interval of buckets [From, To) of a variant.
type Interval struct {
	Key    string  `json:"key"`
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Picked bool    `json:"picked"`
}

// Pick marks the interval of the variant with the key.
func (v *Variant) Pick(key string) {
	v.Key = key
	for i := range v.Intervals {
		v.Intervals[i].Picked = v.Intervals[i].Key == key
	}
}
