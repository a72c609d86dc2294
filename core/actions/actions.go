// Package actions keeps named definitions of events and finds the events that
// fit them.
//
// An action is a list of steps; an event fits when it fits any of them, and it
// fits a step when it passes everything the step asks for: its name, the
// address it happened at, the element it happened on, its properties and those
// of its person, its groups and cohorts. One compiled Matcher answers that
// question wherever it is asked: for events as they arrive, for the history in
// the event store, and for the preview of a definition nobody has saved. So
// what a count says, what a preview shows and what a notification is sent for
// never disagree.
//
// Actions are retroactive. Nothing is written beside an event; a count reads
// the history and keeps what it found, a changed definition starts anew.
package actions
