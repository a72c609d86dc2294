// Package event turns journal records into events.
//
// A Record is one accepted request: what the server knew when it answered, and
// the items of the body, untouched. A Decoder turns it into events: names,
// distinct ids, uuids, timestamps corrected for the client's clock, element
// chains, and properties. An item that is not an event becomes a Notice, and so
// does every change that the decoder makes to an event.
//
// Decoding is pure: the result depends on the record and the limits alone, so
// the pipeline, every sink and a trace see the same event with the same uuid.
// Properties stay the bytes that the client sent wherever possible; the decoder
// allocates nothing for each of them.
//
// The package does no I/O and knows neither the journal nor the database.
package event
