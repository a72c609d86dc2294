package remote_test

import (
	"testing"

	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

func TestLocalURL(t *testing.T) {
	for _, test := range []struct {
		address      string
		tls          bool
		base, socket string
	}{
		{"127.0.0.1:8000", false, "http://127.0.0.1:8000", ""},
		{"guidon.example:443", true, "https://guidon.example:443", ""},
		{":8000", false, "http://127.0.0.1:8000", ""},
		{"0.0.0.0:8000", true, "https://127.0.0.1:8000", ""},
		{"[::]:8000", false, "http://127.0.0.1:8000", ""},
		{"[::1]:8000", false, "http://[::1]:8000", ""},
		{"unix:/run/guidon.sock", false, "http://localhost", "/run/guidon.sock"},
	} {
		base, socket, err := remote.LocalURL(test.address, test.tls)
		if err != nil || base != test.base || socket != test.socket {
			t.Errorf("%s: %s %s %v", test.address, base, socket, err)
		}
	}
	if _, _, err := remote.LocalURL("8000", false); err == nil {
		t.Error("an address without a port is accepted")
	}
}
