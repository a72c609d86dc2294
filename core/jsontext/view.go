package jsontext

import "unsafe"

// View returns b as a string without a copy. It is valid as long as b does not
// change; clone the parts to keep.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
