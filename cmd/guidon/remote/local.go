package remote

import (
	"net"
	"strings"
)

// LocalURL returns the URL of a server on this machine that listens on the address of
// its config, and the path of the socket for a unix: address. An unspecified IP address
// becomes the loopback address. It fails if the address is neither host:port nor unix:.
func LocalURL(address string, tls bool) (base, socket string, err error) {
	scheme := "http://"
	if tls {
		scheme = "https://"
	}
	if socket, ok := strings.CutPrefix(address, "unix:"); ok {
		return scheme + "localhost", socket, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", "", err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + net.JoinHostPort(host, port), "", nil
}
