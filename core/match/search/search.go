// Package search finds texts and patterns in texts, in a time that is known
// before.
//
// Definitions are written by users and compared with text from public requests,
// so that the product of both is an attack: a pattern of a hundred bytes can
// compile to a program of megabytes, and a search that compares every needle at
// every position takes minutes. The package has three searches with a bound:
//
//   - Contains finds a text without the case of ASCII letters, in linear time;
//   - Like finds the patterns of LIKE in SQL, in linear time per piece between
//     underscores;
//   - Size estimates the compiled size of a regular expression from its syntax
//     tree. Matching a text takes at most the product of both.
//
// Searches allocate nothing, except in texts that repeat themselves so much
// that the simple search would take quadratic time.
//
// Limits refuse regular expressions for their size before they are compiled. A
// Budget refuses matches for their work before it is done; it counts comparisons
// and reads no clock.
//
// The package knows no filters and no values; core/match has them.
package search
