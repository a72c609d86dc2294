// Package document reads and rewrites the JSON documents of flags and cohorts:
// filters, and the trees of cohorts.
//
// Clients get back what they sent: unknown names, the order of names and the
// digits of numbers. An Object therefore keeps the text of its values, and a
// change touches only the values it is about. Documents that cannot be read
// stay unchanged.
//
// The package does not check rules (see rules) and does not decide flags (see
// eval, which decodes the same documents into typed filters).
package document
