package eval

import (
	"encoding/json"
)

// Explanation lists the steps that led to the value of a flag. The evaluator
// writes it during the evaluation.
type Explanation struct {
	ID         int64               `json:"id"`
	Key        string              `json:"key"`
	Version    int64               `json:"version"`
	Computed   bool                `json:"computed"`          // false: the flag is left out of answers
	Failure    string              `json:"failure,omitempty"` // the cause if not computed
	Value      any                 `json:"value"`             // true, false, a variant key, or null
	Payload    *string             `json:"payload"`
	Reason     *ExplainedReason    `json:"reason"`
	Subject    string              `json:"subject"` // person, or a group type
	Identifier ExplainedIdentifier `json:"identifier"`
	Gates      []Gate              `json:"gates"` // in order; the last one decided
	Conditions []ExplainedSet      `json:"conditions"`
	Variant    *ExplainedVariant   `json:"variant"`
	DependsOn  []*Explanation      `json:"depends_on"` // explanations of the flags it depends on
}

// ExplainedReason is the reason in answers to clients.
type ExplainedReason struct {
	Code        string `json:"code"`
	Condition   *int   `json:"condition_index"`
	Description string `json:"description"`
}

// ExplainedIdentifier is the identifier that the flag hashes.
type ExplainedIdentifier struct {
	Value  string `json:"value"`
	Source string `json:"source"` // distinct_id, anon_distinct_id, hash_key_override or group_key
}

// Gate is one step of the decision.
type Gate struct {
	Name       string          `json:"name"`   // active, definition, enrolment, holdout, conditions
	Result     string          `json:"result"` // passed, decided, or failed
	Detail     string          `json:"detail,omitempty"`
	Property   string          `json:"property,omitempty"`
	Seen       json.RawMessage `json:"seen,omitempty"`
	Hidden     bool            `json:"hidden,omitempty"` // Seen is removed, see HideStored
	Identifier string          `json:"identifier,omitempty"`
	Hash       *float64        `json:"hash,omitempty"`
	Threshold  *float64        `json:"threshold,omitempty"`
}

// ExplainedSet is one condition set.
type ExplainedSet struct {
	Index      int               `json:"index"`
	Subject    string            `json:"subject"`
	Result     string            `json:"result"` // true, false, unknown, or not_reached
	Reason     string            `json:"reason,omitempty"`
	Filters    []ExplainedFilter `json:"filters"`
	Rollout    *float64          `json:"rollout_percentage"`
	Identifier string            `json:"identifier,omitempty"`
	Hash       *float64          `json:"hash,omitempty"`
	Threshold  *float64          `json:"threshold,omitempty"`
	Variant    string            `json:"variant,omitempty"` // override for those who match
}

// ExplainedFilter is one filter of a set.
type ExplainedFilter struct {
	Key      string            `json:"key"`
	Type     string            `json:"type"`
	Operator string            `json:"operator"`
	Expected json.RawMessage   `json:"expected"`
	Seen     json.RawMessage   `json:"seen"`             // null when missing
	Hidden   bool              `json:"hidden,omitempty"` // Seen is removed, see HideStored
	Source   string            `json:"source"`           // override, stored, missing, identity, several, cohort, flag, or unreadable
	Plugin   string            `json:"plugin,omitempty"` // the plugin instance of the operator
	Negated  bool              `json:"negated,omitempty"`
	Result   string            `json:"result"`
	Why      string            `json:"why,omitempty"`     // the cause of an unknown result
	Within   []ExplainedFilter `json:"filters,omitempty"` // of a cohort
}

// ExplainedVariant explains the choice of the variant.
type ExplainedVariant struct {
	Key       string              `json:"key"`
	Override  bool                `json:"override"`
	Hash      *float64            `json:"hash,omitempty"`
	Intervals []ExplainedInterval `json:"intervals"`
}

// ExplainedInterval is the interval of buckets [From, To) of a variant.
type ExplainedInterval struct {
	Key    string  `json:"key"`
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Picked bool    `json:"picked"`
}
