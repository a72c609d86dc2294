package stage

import (
	"strconv"

	"github.com/google/uuid"
)

// namespace is the one that every client and server of this protocol uses, so
// that ids computed elsewhere for the same project and distinct id are equal.
var namespace = uuid.MustParse("932979b4-65c3-4424-8467-0b66ec27bc22")

// PersonUUID returns the uuid of the person of a distinct id: the one the
// person is created with, and the one of a distinct id without a person.
func PersonUUID(projectID int64, distinctID string) string {
	name := append(strconv.AppendInt(make([]byte, 0, 64), projectID, 10), ':')
	return uuid.NewSHA1(namespace, append(name, distinctID...)).String()
}
