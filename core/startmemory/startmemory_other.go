//go:build !linux

package startmemory

// releaseExecutable does nothing: other systems do not show which pages are unchanged.
func releaseExecutable() {}
