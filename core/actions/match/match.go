// Package match decides whether an event fits the definition of an action.
//
// A definition is a list of steps; an event fits when it fits any step, and it
// fits a step when it passes every condition of it: the event name, the URL,
// the element of the click, and property filters on the event, its person, its
// groups and cohorts. Compile turns steps into an immutable Matcher; an Index
// finds the matchers that an event name can concern, so that an event costs
// what the definitions about its name cost.
//
// The same Matcher answers for live events, for the stored history and for the
// preview of an unsaved definition, so counts, previews and notifications agree.
// Explain returns the same result condition by condition.
//
// Matching is pure and allocates nothing for plain values. What an event does
// not carry (person, groups, cohorts, answers of plugins) comes from a Lookup.
// If a fact is missing, the result is Unknown and the EventView lists the
// missing facts; the caller loads them and matches again. MatchEvents does that
// for a batch.
//
// The package knows no database and no HTTP.
package match
