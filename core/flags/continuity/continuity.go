// Package continuity stores the identifiers of experience continuity: the id by
// which a person was bucketed before login, for each flag that must not change
// its value at login. Merges and deletions of persons move and delete them in
// their own transaction.
package continuity
