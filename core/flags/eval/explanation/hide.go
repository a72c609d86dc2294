package explanation

import "slices"

// HideStored removes what e shows of the stored data of persons, and of groups
// if the caller may not read those: the values that filters tested, the value of
// an enrolment, and a stored identifier. Values of filters that the request gave
// stay. Results stay, because answers of /decide reveal them as well. It marks
// each removed value as hidden. Explanations of dependencies are changed too.
func (e *Explanation) HideStored(persons, groups bool) {
	if persons {
		e.hideIdentifier()
	}
	for i := range e.Gates {
		if g := &e.Gates[i]; g.Seen != nil && persons {
			g.Seen, g.Hidden = nil, true
		}
	}
	for i := range e.Conditions {
		hideFilters(e.Conditions[i].Filters, persons, groups)
	}
	for _, d := range e.DependsOn {
		d.HideStored(persons, groups)
	}
}

// hideIdentifier removes an identifier that was stored for the person.
func (e *Explanation) hideIdentifier() {
	if e.Identifier.Source != "hash_key_override" {
		return
	}
	e.Identifier.Value = ""
	for i := range e.Gates {
		e.Gates[i].Identifier = ""
	}
	for i := range e.Conditions {
		e.Conditions[i].Identifier = ""
	}
}

// storedSources are the sources of values that come from the store, alone or
// among others.
var storedSources = []string{"stored", "several"}

func hideFilters(list []Filter, persons, groups bool) {
	for i := range list {
		f := &list[i]
		hide := persons
		if f.Type == "group" {
			hide = groups
		}
		if hide && f.Seen != nil && slices.Contains(storedSources, f.Source) {
			f.Seen, f.Hidden = nil, true
		}
		hideFilters(f.Within, persons, groups)
	}
}

// GateResult returns the result of a gate that a request passes, or that decides.
func GateResult(passed bool) string {
	if passed {
		return "passed"
	}
	return "decided"
}

// Number returns a pointer to a copy of n.
func Number(n float64) *float64 { return &n }
