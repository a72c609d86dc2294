// Package hostname tells requests to a loopback address from requests that a
// browser was tricked into.
//
// A page can point a name of its own at 127.0.0.1 after it was loaded (DNS
// rebinding) and then read what a server there answers without a key. Its
// requests name that host; requests of people and scrapers on the machine name
// an address or localhost.
package hostname

import (
	"net"
	"net/netip"
	"strings"
)

// IsLoopback reports whether addr is a TCP address that only this machine reaches.
func IsLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// NamesLoopback reports whether a Host header, with or without a port, is an IP
// address, localhost or a name below it. An empty header is one, too.
func NamesLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}
