package settings

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
)

// Reattach connects to a plugin on this machine that was started by hand, for
// example under a debugger. The plugin prints both values when it starts.
type Reattach struct {
	// Socket is the path of its socket.
	Socket string `koanf:"socket"`
	// PID is the expected process id; a connection to another process is
	// refused. 0 accepts any process of the same user.
	PID int `koanf:"pid"`
}

// Remote connects to a plugin on another machine. Both sides present a
// certificate.
type Remote struct {
	// Address is host:port.
	Address string `koanf:"address"`
	// CA, Cert and Key are PEM files: the authority that signs the plugin's
	// certificate, and the server's own certificate and key. They are read at
	// each connection.
	CA   string `koanf:"ca"`
	Cert string `koanf:"cert"`
	Key  string `koanf:"key"`
	// ServerName is the name in the plugin's certificate; "" is the host of
	// the address.
	ServerName string `koanf:"server_name"`
}

// Attached reports whether the server connects to a process that it does not
// start.
func (c Instance) Attached() bool { return c.Address() != "" }

// Address is the address of an attached process, or "".
func (c Instance) Address() string { return cmp.Or(c.Reattach.Socket, c.Remote.Address) }

// validateAttached checks the Reattach and Remote sections.
func (c Instance) validateAttached() error {
	r := c.Remote
	_, _, portErr := net.SplitHostPort(r.Address)
	switch {
	case !c.Attached() && (c.Reattach != Reattach{} || r != Remote{}):
		return errors.New("reattach needs a socket, remote an address")
	case !c.Attached():
		return nil
	case c.Reattach.Socket != "" && r.Address != "":
		return errors.New("reattach and remote exclude each other")
	case c.Reattach.PID < 0:
		return errors.New("reattach.pid must not be negative")
	case c.Reattach.Socket != "" && !filepath.IsAbs(c.Reattach.Socket):
		return errors.New("reattach.socket must be an absolute path")
	case r.Address != "" && portErr != nil:
		return fmt.Errorf("remote.address must be host:port, not %q", r.Address)
	case r.Address != "" && (r.CA == "" || r.Cert == "" || r.Key == ""):
		return errors.New("remote needs ca, cert and key: both sides show a certificate")
	case c.SHA256 != "" || c.Limits != Limits{} || c.Network != "" || len(c.Env.Allow)+len(c.Env.Set) > 0:
		return errors.New("sha256, limits, network and env are for processes that the server starts itself")
	}
	return nil
}

// ConnectionKey identifies the connection to an attached process. Instances with
// equal keys may share it.
func (c Instance) ConnectionKey() []string {
	return []string{"attach", c.Reattach.Socket, strconv.Itoa(c.Reattach.PID), c.Remote.Address, c.Remote.CA, c.Remote.Cert, c.Remote.Key, c.Remote.ServerName}
}
