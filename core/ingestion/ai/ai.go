// Package ai takes single AI events in whose large values are parts of a multipart
// form.
//
// Client libraries post an event of a language model to /i/v0/ai: the part event
// has the event as JSON, event.properties may have its properties, and each part
// event.properties.NAME has the value of a property, such as the messages that went
// into a model. A value of JSON becomes that JSON, a text becomes a string, and any
// other content base64. A property that the event has already is refused: a blob
// never replaces it.
//
// An event is stored whole or shortened, never lost: if it exceeds the size of an
// event, its largest values from parts are cut to a text that says so, and the
// property $ai_truncated_properties names them.
package ai
