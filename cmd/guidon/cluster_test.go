package main_test

import (
	"strings"
	"testing"
)

// A server without a cluster shows itself, and what it is.
func TestClusterStatus(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	for _, c := range []struct{ command, want string }{
		{"cluster status", "one server without a cluster (cluster.enabled is false)"},
		{"cluster status", "capture,decide,manage,process,deliver"},
		{"cluster status -o json", `"clustered": false`},
	} {
		output, err := s.runWithKey(s.personal, strings.Fields(c.command)...)
		if err != nil || !strings.Contains(output, c.want) {
			t.Errorf("guidon %s: %v\n%s", c.command, err, output)
		}
	}
}
