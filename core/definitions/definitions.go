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

// Kind is what a definition defines.
type Kind int

// The kinds. Their numbers are stored.
const (
	Event Kind = iota
	EventProperty
	PersonProperty
	GroupProperty
	kindCount
)

// noGroup is the group type index of what does not belong to groups.
const noGroup = -1

// Definition is what is known of the name of an event or a property.
type Definition struct {
	ID         string // a UUID
	Kind       Kind
	GroupIndex int // of the group type, for group properties; else -1
	Name       string
	// PropertyType is String, Numeric, Boolean or DateTime, and empty while
	// nothing was seen that tells.
	PropertyType string
	CreatedAt    time.Time
	// LastSeenAt is rounded down to the hour (Config.LastSeenEvery).
	LastSeenAt time.Time
	Annotation
}

// Annotation is what people say about a definition.
type Annotation struct {
	Description string
	Tags        []string
	Hidden      bool
	Verified    bool
	VerifiedAt  time.Time // zero when it is not
	VerifiedBy  int64     // 0 for nobody
	UpdatedAt   time.Time // zero when nobody ever said anything
	UpdatedBy   int64
}

// Config bounds what a project can have.
type Config struct {
	// MaxEventDefinitions is how many event names a project can have.
	MaxEventDefinitions int `koanf:"max_event_definitions"`
	// MaxPropertyDefinitions is how many properties a project can have, of
	// events, of persons and of groups each.
	MaxPropertyDefinitions int `koanf:"max_property_definitions"`
	// LastSeenEvery is how precise LastSeenAt is: a name in use is written once
	// in this time.
	LastSeenEvery time.Duration `koanf:"last_seen_every"`
}

// DefaultConfig is enough for everybody who does not put ids into names.
func DefaultConfig() Config {
	return Config{MaxEventDefinitions: 10_000, MaxPropertyDefinitions: 10_000, LastSeenEvery: time.Hour}
}

// Validate reports what makes no sense, by its key.
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

// maxName is how many bytes a name has at most: what is longer has no
// definition. Event names are cut to 200 characters before they get here.
const maxName = 800

// Types of warnings.
const (
	TooManyEvents     = "event_definitions_limit_reached"
	TooManyProperties = "property_definitions_limit_reached"
	NameTooLong       = "property_name_too_long"
)

// Warning says that names of a project got no definition.
type Warning struct {
	ProjectID int64
	Type      string
	EventUUID string         // of the first case
	Details   map[string]any // how many, and an example
}

var errNotFound = fault.New(fault.NotFound, "not_found", "Not found.")
