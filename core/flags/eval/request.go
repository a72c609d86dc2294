package eval

import (
	"encoding/json"
	"time"

	"github.com/guidonhq/guidon/core/match"
)

// Request is the subject of an evaluation: a person, their groups, and the
// properties that the caller gives.
type Request struct {
	DistinctID       string
	AnonymousID      string                     // the id before login, for flags with experience continuity
	DeviceID         string                     // for flags that bucket by device
	Groups           map[string]string          // group type name to group key
	PersonProperties json.RawMessage            // an object; precedes the stored properties
	Location         json.RawMessage            // an object; precedes the stored properties, not PersonProperties
	GroupProperties  map[string]json.RawMessage // PersonProperties by group type name
	FlagKeys         []string                   // nil selects all active flags
	Scope            Scope
}

// KnownProperties is the stored data about the subjects of a request.
type KnownProperties struct {
	PersonProperties json.RawMessage
	GroupProperties  map[string]json.RawMessage
	StaticCohorts    []int64           // the static cohorts that list the person
	HashKeys         map[string]string // experience continuity: flag key to identifier
	Plugins          match.External    // answers for operators of plugins; nil: they are unknown
}

// Decision is the result of one flag.
type Decision struct {
	ID        int64
	Key       string
	Version   int64
	On        bool
	Variant   string // empty for a flag without one, and when it is off
	Payload   string // a JSON text, or empty
	Reason    Reason
	Condition int // index of the condition set, or -1
	Failed    Cause
}

// Value returns the value for clients: true, false or a variant key.
func (d Decision) Value() any {
	if d.Variant != "" {
		return d.Variant
	}
	return d.On
}

// Evaluate decides flags from its arguments alone: it reads no store and calls
// no plugin. A property that is neither in q nor in known does not exist. The
// decisions are ordered by flag id; a flag that cannot be computed has Failed
// set. Static cohorts and experience continuity come from known.
func (s *Set) Evaluate(q *Request, known *KnownProperties, now time.Time) []Decision {
	e := s.evaluate(q, known, now, false)
	defer e.Release()
	return e.Decisions()
}

// EvaluateWork is Evaluate, and returns the work on texts that it took.
func (s *Set) EvaluateWork(q *Request, known *KnownProperties, now time.Time) ([]Decision, int64) {
	e := s.evaluate(q, known, now, false)
	defer e.Release()
	return e.Decisions(), e.Work()
}

// Explain is Evaluate with an explanation of each step. Without FlagKeys it
// includes the inactive flags.
func (s *Set) Explain(q *Request, known *KnownProperties, now time.Time) []*Explanation {
	e := s.evaluate(q, known, now, true)
	defer e.Release()
	return e.Explanations()
}

func (s *Set) evaluate(q *Request, known *KnownProperties, now time.Time, traced bool) *Evaluation {
	e := NewEvaluation(s, q.DistinctID, now)
	if traced {
		e.Trace()
	}
	e.SetRequest(q)
	e.Select(q.FlagKeys, traced)
	e.Limit(q.Scope)
	e.setKnown(known)
	e.Run()
	return e
}
