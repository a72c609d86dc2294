package apikey

import (
	"regexp"
	"strings"

	"github.com/guidonhq/guidon/core/fault"
)

// Shape is the defect that Check finds in a project key, empty for none.
type Shape string

// The shapes of invalid project keys. A value that is not a string is rejected
// by its decoder.
const (
	ShapeEmpty    Shape = "empty"
	ShapeTooLong  Shape = "too_long"
	ShapeNotASCII Shape = "not_ascii"
	ShapePersonal Shape = "personal_api_key"
	ShapeSecret   Shape = "secret_api_key"
	ShapeNullByte Shape = "null_byte"
)

// Check returns the key without surrounding white space, which clients read
// from files, and the defect that makes it invalid without a lookup. It does not
// allocate.
func Check(key string) (string, Shape) {
	key = strings.TrimSpace(key)
	switch {
	case key == "":
		return key, ShapeEmpty
	case len(key) > maxProjectKey:
		return key, ShapeTooLong
	case !isASCII(key):
		return key, ShapeNotASCII
	case strings.HasPrefix(key, PersonalPrefix):
		return key, ShapePersonal
	case IsSecret(key):
		return key, ShapeSecret
	case strings.IndexByte(key, 0) >= 0:
		return key, ShapeNullByte
	}
	return key, ""
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// ownKey matches project keys that may be imported.
var ownKey = regexp.MustCompile(`^[A-Za-z0-9_-]{8,64}$`)

// CheckOwn returns Invalid for a project key that may not be imported.
func CheckOwn(key string) error {
	if !ownKey.MatchString(key) || strings.HasPrefix(key, PersonalPrefix) || IsSecret(key) {
		return fault.Field("key", "invalid_input", "A project key is 8 to 64 letters, digits, - and _ and begins neither with phx_ nor with phs_.")
	}
	return nil
}

var personalKey = regexp.MustCompile(`^phx_[A-Za-z0-9_-]{8,64}$`)

// Personal returns key if it has the shape of a personal key, a new random one for "",
// and Invalid otherwise.
func Personal(key string) (string, error) {
	switch {
	case key == "":
		return New(PersonalPrefix), nil
	case personalKey.MatchString(key):
		return key, nil
	}
	return "", fault.Field("key", "invalid_input", "A personal key is phx_ and 8 to 64 letters, digits, - and _.")
}
