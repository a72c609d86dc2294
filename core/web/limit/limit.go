// Package limit bounds the rates of requests.
//
// A Limiter is a table of token buckets, one for each key: a project, a
// personal key, the address of a client. Its memory is bounded: it holds a
// fixed number of buckets, and a new key replaces one that was not used for a
// long time. A replaced bucket is full again when its key returns, so an
// attacker with many addresses can make the limit weaker, and never makes the
// server slower or larger.
package limit
