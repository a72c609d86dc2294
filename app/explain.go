package app

import (
	"strings"

	"github.com/guidonhq/guidon/core/fault"
)

// Explain returns the text of an error for the command line. A failure that is
// the caller's to solve is its field and its sentence, without the code for
// programs and without the cause.
func Explain(err error) string {
	f := fault.From(err)
	if f == nil || f.Kind == fault.Internal {
		return err.Error()
	}
	sentence := f.Detail
	cause := f.Unwrap()
	switch {
	case f.Attr != "":
		sentence = f.Attr + ": " + sentence
	case f.Code == "not_found" && cause != nil:
		sentence = cause.Error() + ": " + sentence // the sentence alone names nothing
	}
	return strings.Replace(err.Error(), f.Error(), sentence, 1)
}

// IsNotFound reports whether err stands for an object that does not exist.
func IsNotFound(err error) bool { return fault.Is(err, fault.NotFound) }
