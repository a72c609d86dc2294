// Package eval decides feature flags: it is pure and imports only match.
//
// Compile turns the stored definitions of a project into an immutable Set.
// Definitions that cannot be decoded do not fail the compilation: the flag is
// left out of every answer with a Cause, and the other flags are unaffected.
// Every property that some filter reads gets a slot, so that an evaluation
// looks up the names of a request once and filters use slots only. Dependencies
// in a circle are disabled at compile time, so that evaluation terminates.
//
// An Evaluation decides the flags of one request. Stored data is read only if a
// condition needs it: Run leaves such flags pending and records the need, the
// caller looks the data up and calls Run again. A flag whose data, cohort,
// dependency or operator is unavailable fails alone; if another condition set
// gives the same value in any case, the flag has that value. Evaluations are
// pooled, and deciding allocates nothing.
//
// The tracer is part of the evaluation and writes an Explanation of each step;
// the value and its explanation cannot differ.
//
// The published hash (Bucket) decides the rollout and the variant. It equals the
// hash of the client libraries, so that people keep their values after moving a
// project here.
package eval
