package skipping

import (
	"os"
	"testing"
)

// TestSkipsTheSecondTime fails if it is the first to create the file.
func TestSkipsTheSecondTime(t *testing.T) {
	file, err := os.OpenFile(os.Getenv("FAILS_ONCE")+".skipping", os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Skip("not again")
	}
	_ = file.Close()
	t.Error("the first time")
}
