// Package actions manages actions: named definitions of events.
//
// An action is a list of steps, see actions/match; an event fits an action when
// it fits any step. This package stores actions, validates changes, logs them in
// the activity log, and keeps the compiled actions of every project in memory.
// EventMatcher matches live events with them, Previews matches unsaved
// definitions with the newest events, and actions/history counts stored events.
// All use the same compiled Matcher, so that counts, previews and notifications
// agree.
//
// Actions are retroactive. Nothing is written beside an event; a changed
// definition applies to all stored events.
package actions
