// Package properties holds the properties of a person or group as a JSON
// object whose values keep their text.
//
// Numbers keep the digits that a client sent, members keep their order, and a
// property that does not change is never parsed. Cursor walks an object without
// allocating; Object is the members in memory, with the changes that $set and
// its relatives need. The package trusts its input to be valid JSON, as
// ingestion has checked it; on other text it stops early but never fails.
package properties
