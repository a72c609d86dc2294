package process_test

import (
	"testing"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/host/process"
)

// A host that gives a silent process up may find that it has just died: the status of its
// exit says so.
func TestExitBeforeItIsExpectedHasItsCause(t *testing.T) {
	t.Parallel()
	p, err := process.Start(t.Context(), process.Options{
		Argv: []string{"/bin/sh", "-c", "exec sleep 600"}, Env: []string{"PATH=/usr/bin:/bin"},
		Logs: process.NewLogPipe(zap.NewNop(), 100, func(string, int) {}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if exit := p.ExpectExitOfKilled(); exit.Expected || exit.Reason() != "signal" {
		t.Errorf("exit %+v", exit)
	}
}
