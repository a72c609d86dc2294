package auth

import (
	"encoding/json"
	"time"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/fault"
)

// Project owns events, persons, flags and actions. It is a value: copies share
// nothing mutable.
type Project struct {
	ID             int64
	OrganizationID string
	Name           string
	Timezone       string // a name of the IANA database, never empty
	AnonymizeIPs   bool   // client addresses are not stored
	Settings       string // a JSON object of further settings, never empty
	CreatedAt      time.Time
}

// Location returns the time zone of the project. Each call loads it; keep the
// result where it is needed often.
func (p Project) Location() *time.Location {
	loc, err := time.LoadLocation(p.Timezone)
	if err != nil {
		return time.UTC // valid when it was set; the zone database changed since
	}
	return loc
}

// NewProject describes a project to create. An empty time zone is UTC.
type NewProject struct {
	OrganizationID string
	Name           string
	Timezone       string
	AnonymizeIPs   bool
}

// ProjectChange is a change of a project; nil keeps a field.
type ProjectChange struct {
	Name         *string
	Timezone     *string
	AnonymizeIPs *bool
	Settings     *string
}

func checkTimezone(name string) error {
	// LoadLocation accepts these as UTC and as the zone of this machine.
	if name == "" || name == "Local" {
		return fault.Fieldf("timezone", "invalid_choice", "%q is not a valid choice.", name)
	}
	if _, err := time.LoadLocation(name); err != nil {
		return fault.Fieldf("timezone", "invalid_choice", "%q is not a valid choice.", name)
	}
	return nil
}

func checkSettings(text string) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
		return fault.Field("settings", "invalid_input", "This field must be a JSON object.")
	}
	return nil
}

// apply applies the change to p, or returns Invalid for the field.
func (c ProjectChange) apply(p *Project) error {
	var err error
	if c.Name != nil {
		if p.Name, err = apikey.CheckName("name", *c.Name); err != nil {
			return err
		}
	}
	if c.Timezone != nil {
		if err := checkTimezone(*c.Timezone); err != nil {
			return err
		}
		p.Timezone = *c.Timezone
	}
	if c.AnonymizeIPs != nil {
		p.AnonymizeIPs = *c.AnonymizeIPs
	}
	if c.Settings != nil {
		if err := checkSettings(*c.Settings); err != nil {
			return err
		}
		p.Settings = *c.Settings
	}
	return nil
}
