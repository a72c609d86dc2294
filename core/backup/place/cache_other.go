//go:build !linux

package place

import "os"

// dropCache does nothing: the page cache of this system has no such call.
func dropCache(*os.File) {}
