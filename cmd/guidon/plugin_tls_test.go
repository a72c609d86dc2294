package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/web/webtest"
)

// The commands reach an admin address with TLS that asks for a client certificate,
// and one on a Unix socket.
func TestPluginCommandsOverTLSAndSocket(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	authority := webtest.NewAuthority(t)
	cert, key := filepath.Join(s.dir, "cert.pem"), filepath.Join(s.dir, "key.pem")
	authority.Issue(t, cert, key)
	plain, err := os.ReadFile(s.config())
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.config(), string(plain)+"http:\n  admin_tls: {cert_file: "+cert+", key_file: "+key+", client_ca_file: "+authority.File+"}\n")
	s.start(t)
	until(t, func() string {
		output, err := s.runWithKey(s.personal, "plugin", "status", "--ca", authority.File, "--client-cert", cert, "--client-key", key)
		if err != nil || !strings.Contains(output, "lines  sink  file  ready") {
			return output
		}
		return ""
	})
	for name, args := range map[string][]string{
		"an unknown authority":         {"--client-cert", cert, "--client-key", key},
		"no client certificate":        {"--ca", authority.File},
		"plain HTTP to a TLS address":  {"--server", "http://" + s.admin},
		"an authority without content": {"--ca", s.config()},
	} {
		if output, err := s.runWithKey(s.personal, append([]string{"plugin", "status"}, args...)...); err == nil {
			t.Errorf("%s: %s", name, output)
		}
	}
	if err := s.stop(t); err != nil {
		t.Fatal(err)
	}

	write(t, s.config(), string(plain))
	s.admin = "unix:" + filepath.Join(s.dir, "admin.sock")
	s.start(t)
	until(t, func() string {
		output, err := s.runWithKey(s.personal, "plugin", "status")
		if err != nil || !strings.Contains(output, "lines  sink  file  ready") {
			return output
		}
		return ""
	})
}
