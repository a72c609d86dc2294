// Package definitions lists the events and properties of a project: their names,
// when each was last seen, and the type of a property's values. Users describe,
// tag and verify them.
//
// Process is a stage of the ingestion worker. It writes a name when it first
// occurs and then at most once an hour. Names that were written are cached in
// memory, so that an event without new names costs a scan of its properties and
// no SQL.
//
// Clients can create names without end (an id in a property name is enough), so
// the number of names per project is limited. Events with further names are
// ingested like all others; the names get no definition, and a warning informs
// the project.
package definitions

import (
	"errors"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

// Kind is the kind of thing a definition is about.
type Kind int

// The kinds. Their numbers are stored.
const (
	Event Kind = iota
	EventProperty
	PersonProperty
	GroupProperty
	kindCount
)

// noGroup is the group type index of kinds without groups.
const noGroup = -1

// Definition is a known event or property name.
type Definition struct {
	ID         string // a UUID
	Kind       Kind
	GroupIndex int // of the group type, for group properties; else -1
	Name       string
	// PropertyType is String, Numeric, Boolean or DateTime; empty until a value
	// has a type.
	PropertyType string
	CreatedAt    time.Time
	// LastSeenAt is rounded down to the hour (Config.LastSeenEvery).
	LastSeenAt time.Time
	Annotation
}

// Annotation is what users add to a definition.
type Annotation struct {
	Description string
	Tags        []string
	Hidden      bool
	Verified    bool
	VerifiedAt  time.Time // zero if it is not verified
	VerifiedBy  int64     // a user id, 0 if it is not verified
	UpdatedAt   time.Time // zero without annotation
	UpdatedBy   int64
}

// Config limits the definitions of a project.
type Config struct {
	// MaxEventDefinitions is the maximum number of event names of a project.
	MaxEventDefinitions int `koanf:"max_event_definitions"`
	// MaxPropertyDefinitions is the maximum number of properties of a project,
	// for events, persons and groups each.
	MaxPropertyDefinitions int `koanf:"max_property_definitions"`
	// LastSeenEvery is the precision of LastSeenAt: a name in use is written
	// once in this time.
	LastSeenEvery time.Duration `koanf:"last_seen_every"`
}

// DefaultConfig suits projects that do not put ids into names.
func DefaultConfig() Config {
	return Config{MaxEventDefinitions: 10_000, MaxPropertyDefinitions: 10_000, LastSeenEvery: time.Hour}
}

// Validate reports all invalid settings, by their keys.
func (c Config) Validate() error {
	var errs []error
	if c.MaxEventDefinitions < 0 {
		errs = append(errs, fmt.Errorf("max_event_definitions must not be negative, got %d", c.MaxEventDefinitions))
	}
	if c.MaxPropertyDefinitions < 0 {
		errs = append(errs, fmt.Errorf("max_property_definitions must not be negative, got %d", c.MaxPropertyDefinitions))
	}
	if c.LastSeenEvery < time.Second {
		errs = append(errs, fmt.Errorf("last_seen_every must be at least a second, got %s", c.LastSeenEvery))
	}
	return errors.Join(errs...)
}

func (c Config) limit(k Kind) int {
	if k == Event {
		return c.MaxEventDefinitions
	}
	return c.MaxPropertyDefinitions
}

// maxName is the maximum length of a name in bytes; longer names have no
// definition. Ingestion truncates event names to 200 characters before.
const maxName = 800

// Types of warnings.
const (
	TooManyEvents     = "event_definitions_limit_reached"
	TooManyProperties = "property_definitions_limit_reached"
	NameTooLong       = "property_name_too_long"
)

// Warning reports names of a project without definition.
type Warning struct {
	ProjectID int64
	Type      string
	EventUUID string         // of the first case
	Details   map[string]any // the number of names, and an example
}

var errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")
