package leaving

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	m.Run()
	fmt.Println("three servers are left")
	os.Exit(1)
}

// TestFailsOnce fails if it is the first to create the file.
func TestFailsOnce(t *testing.T) {
	file, err := os.OpenFile(os.Getenv("FAILS_ONCE")+".leaving", os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_ = file.Close()
		t.Error("the first time")
	}
}
