package settings

import "time"

// Delivery is the `delivery` section of a sink: which events it receives, which
// of their properties, how many at a time and how failed batches are retried.
// The plugin does not see it, and a change does not restart the plugin. This
// package only declares the section; delivery validates and applies it. The zero
// value delivers every event with the plugin's own batch sizes.
type Delivery struct {
	Batch    Batch         `koanf:"batch"`
	Events   EventFilter   `koanf:"events"`
	Projects ProjectFilter `koanf:"projects"`
	// Properties are property filters in the form that flags use, with key,
	// operator and value; an event must match all of them.
	Properties []map[string]any `koanf:"properties"`
	// Sample is the fraction of distinct ids whose events are sent. The same
	// ids are selected each time; 0 and 1 select all.
	Sample float64   `koanf:"sample"`
	Redact Redaction `koanf:"redact"`
	Retry  Retry     `koanf:"retry"`
	Staged Staged    `koanf:"staged"`
}

// Batch limits the batches of a sink. A value takes precedence over the server's
// own, within the limits that the plugin reports; zero uses the plugin's value.
type Batch struct {
	MaxEvents   int           `koanf:"max_events"`
	MaxBytes    int           `koanf:"max_bytes"`
	Linger      time.Duration `koanf:"linger"`
	MaxInFlight int           `koanf:"max_in_flight"`
}

// EventFilter selects events by name; * matches any characters and ? matches
// one. An empty Include selects all, Exclude takes precedence.
type EventFilter struct {
	Include []string `koanf:"include"`
	Exclude []string `koanf:"exclude"`
}

// ProjectFilter selects events by project. An empty Include selects all, Exclude
// takes precedence.
type ProjectFilter struct {
	Include []int64 `koanf:"include"`
	Exclude []int64 `koanf:"exclude"`
}

// Redaction names properties that are removed, or replaced by a hash, before the
// plugin sees the event.
type Redaction struct {
	Remove []string `koanf:"remove"`
	Hash   []string `koanf:"hash"`
	// HashKey keys the hash, so that values cannot be guessed from it; it
	// may be a reference, which the host resolves.
	HashKey string `koanf:"hash_key" expand:"false"`
}

// Retry limits the attempts to send a batch. OnExhausted is what happens after
// the last attempt: dead_letter or hold.
type Retry struct {
	Initial     time.Duration `koanf:"initial"`
	Max         time.Duration `koanf:"max"`
	MaxAttempts int           `koanf:"max_attempts"`
	MaxAge      time.Duration `koanf:"max_age"`
	OnExhausted string        `koanf:"on_exhausted"`
}

// Staged limits what a plugin may hold uncommitted before the server requests a
// flush.
type Staged struct {
	MaxEvents int           `koanf:"max_events"`
	MaxBytes  int           `koanf:"max_bytes"`
	MaxAge    time.Duration `koanf:"max_age"`
}
