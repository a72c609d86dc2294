package candidate

import (
	"testing"
	"time"
)

func TestAProcessThatEndedInTimeIsNotReportedWhenTheCaseComesLate(t *testing.T) {
	t.Parallel()
	p := &Process{exited: make(chan struct{})}
	close(p.exited)
	for range 1000 {
		if !p.Ends(-time.Second) {
			t.Fatal("a process that has ended is reported as running")
		}
	}
}
