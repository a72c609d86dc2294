package main_test

import (
	"strings"
	"testing"
)

func TestConfigCommands(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	if out, err := s.guidon("config", "check"); err != nil || !strings.Contains(out, "is valid") {
		t.Errorf("check: %v\n%s", err, out)
	}
	out, err := s.guidon("config", "show")
	if err != nil || !strings.Contains(out, "GUIDON_DATA_DIR") || !strings.Contains(out, "plugins.instances") {
		t.Errorf("show: %v\n%s", err, out)
	}
	byDefault, err := s.guidon("config")
	if err != nil || !strings.HasPrefix(byDefault, "# Every setting") {
		t.Errorf("config: %v\n%.200s", err, byDefault)
	}
	write(t, s.config(), "http: {adress: x}\n")
	for _, command := range []string{"check", "show"} {
		if out, err := s.guidon("config", command); err == nil || !strings.Contains(out, `did you mean "http.address"`) {
			t.Errorf("%s of a wrong file: %v\n%s", command, err, out)
		}
	}
}
