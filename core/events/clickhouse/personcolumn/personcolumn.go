// Package personcolumn encodes the person of an event for a column of ClickHouse.
package personcolumn

import (
	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/persons/stage"
)

// The persons that cost no bytes.
const (
	ownPerson  = "=" // has the uuid that follows from project and distinct id
	textPerson = "d" // has the distinct id as its uuid
)

// Encode returns the person column: empty without a person, a short text, or the 16
// bytes of the uuid.
func Encode(id uuid.UUID, project int64, distinctID string) string {
	switch text := id.String(); text {
	case stage.PersonUUID(project, distinctID):
		return ownPerson
	case distinctID:
		return textPerson
	}
	return string(id[:])
}

// Decode returns the uuid of a person column, nil without one.
func Decode(person string, project int64, distinctID string) *uuid.UUID {
	var id uuid.UUID
	var err error
	switch {
	case person == ownPerson:
		id, err = uuid.Parse(stage.PersonUUID(project, distinctID))
	case person == textPerson:
		id, err = uuid.Parse(distinctID)
	case len(person) == len(id):
		copy(id[:], person)
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	return &id
}
