// Package flags knows what is on, and for whom.
//
// A flag is a row with a key and a document of filters (Flag, Filters). Every
// write checks the whole document (CheckFilters) and, in one transaction,
// stores the row, its new version and a line in the activity log (Service,
// Store). All active flags of a project are then compiled into one immutable
// Set and swapped in (Snapshots): from there on decide reads nothing but memory,
// and a database that is away costs nothing but news.
//
// Evaluation is pure: a Set, a Question and a time in, Decisions out. Only what
// a condition reads and the request did not give is asked of a store, once a
// request. A flag that cannot be computed, because a cohort, a dependency or an
// operator is missing or stored properties cannot be read, is left out and
// said so; it never takes another one down. The same code writes the trace that
// answers "why did this user get this value?".
//
// The published hash decides who is in a percentage and which variant somebody
// gets, so nobody changes bucket by coming here.
package flags
