package flaky

import (
	"os"
	"testing"
)

// TestFailsOnce fails if it is the first to create the file.
func TestFailsOnce(t *testing.T) { failOnce(t, os.Getenv("FAILS_ONCE")) }

// TestKillOnce does the same, under a name that is never retried.
func TestKillOnce(t *testing.T) { failOnce(t, os.Getenv("FAILS_ONCE")+".kill") }

func failOnce(t *testing.T, path string) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_ = file.Close()
		t.Error("the first time")
	}
}
