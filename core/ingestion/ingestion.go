// Package ingestion takes events in and sees them through.
//
// A request becomes one journal record: Capture finds the project key in the
// body, checks that the body has one of the known shapes, and answers only
// when the record is on disk. Nothing else happens while the client waits.
//
// Behind the answer two kinds of readers walk the journal, each with a cursor
// of its own. The Worker decodes records into events and hands them, in order,
// to the stages (persons, event store, actions) inside one database
// transaction that also carries its cursor, so that an event is processed
// exactly once. Deliver hands the same events to every sink plugin, at least
// once and in order per distinct id, and no sink waits for another or for the
// database.
//
// Both use the same pure Decode, so an event has the same uuid, time and
// properties wherever it turns up. What a client sent and the room could not
// use is never silently gone: it is counted, remembered as a warning the
// project can read, or kept as a dead letter that can be replayed.
package ingestion
