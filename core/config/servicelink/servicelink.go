// Package servicelink recognizes variables of the environment that Kubernetes and docker
// set to announce a service, and that look like settings.
package servicelink

import (
	"regexp"
	"strings"
)

// Names of variables that Kubernetes and docker --link set for a service or a
// container called guidon or guidon-SOMETHING:
//
//	GUIDON_SERVICE_HOST=10.0.0.1           GUIDON_SERVICE_PORT_HTTP=8000
//	GUIDON_PORT_8000_TCP=tcp://10.0.0.1:8000  GUIDON_PORT_8000_TCP_ADDR=10.0.0.1
//
// No setting has such a name, and no misspelt one either.
var (
	serviceName = regexp.MustCompile(`^GUIDON_([A-Z0-9_]+_)?SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$`)
	portName    = regexp.MustCompile(`^GUIDON_([A-Z0-9_]+_)?PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR|START|END)|_PORT_(START|END))?$`)
	portValue   = regexp.MustCompile(`^(tcp|udp|sctp)://[^/]+:[0-9]+$`)
	linkEnvName = regexp.MustCompile(`^GUIDON_([A-Z0-9_]+_)?ENV_[A-Za-z0-9_]+$`)
	linkName    = regexp.MustCompile(`^GUIDON_([A-Z0-9_]+_)?NAME$`)
)

// Is reports whether Kubernetes or docker set a variable to announce
// a service. GUIDON_PORT and GUIDON_NAME are told from a misspelt setting by
// their values: tcp://10.0.0.1:8000 and /web/guidon.
func Is(name, value string) bool {
	switch {
	case serviceName.MatchString(name), portName.MatchString(name), linkEnvName.MatchString(name):
		return true
	case strings.HasSuffix(name, "_PORT"):
		return portValue.MatchString(value)
	}
	return linkName.MatchString(name) && strings.HasPrefix(value, "/") && strings.Count(value, "/") == 2
}
