//go:build e2e

package e2e_test

import (
	"os/exec"
	"testing"
)

// TestEngineOfClickHouse tests the event store with the engine of a current ClickHouse. The
// statements of its tests run one at a time and mostly wait, so it runs beside other tests.
func TestEngineOfClickHouse(t *testing.T) {
	longTest(t)
	t.Parallel()
	out, err := exec.Command("./chdb").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(out, 30000))
	}
	t.Logf("%s", out)
}
