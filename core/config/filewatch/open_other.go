//go:build !linux

package filewatch

import "os"

// isOpenForWriting reports false: this system does not tell.
func isOpenForWriting(*os.File) bool { return false }
