// Package configcheck validates values that several sections of the configuration use.
package configcheck

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
)

// Address reports an address that cannot be listened on, whatever the
// machine: without a port, or with an impossible one.
func Address(key, address string) error {
	if address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s: %q is not an address: write host:port, such as 127.0.0.1:8000, [::1]:8000 or :8000", key, address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("%s: %q has no usable port: write a number from 0 to 65535", key, address)
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && !hostName.MatchString(host) {
		return fmt.Errorf("%s: %q is neither an IP address nor a host name", key, host)
	}
	return nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`)
