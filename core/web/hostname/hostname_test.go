package hostname_test

import (
	"net"
	"testing"

	"github.com/guidonhq/guidon/core/web/hostname"
)

func TestNamesLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"127.0.0.1:8001": true, "127.0.0.1": true, "[::1]:8001": true, "[::1]": true, "::1": true,
		"localhost:8001": true, "LocalHost": true, "a.localhost": true, "localhost.": true, "": true,
		"10.0.0.7:8001": true, "evil.example": false, "evil.example:8001": false, "127.0.0.1.evil.example": false,
		"localhost.evil.example": false, "xlocalhost": false, "a:b:c": false,
	} {
		if got := hostname.NamesLoopback(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{"127.0.0.1": true, "127.1.2.3": true, "::1": true, "0.0.0.0": false, "10.0.0.1": false} {
		if got := hostname.IsLoopback(&net.TCPAddr{IP: net.ParseIP(address)}); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
	if hostname.IsLoopback(&net.UnixAddr{Name: "/run/admin.sock", Net: "unix"}) {
		t.Error("a Unix socket is no loopback address")
	}
}
