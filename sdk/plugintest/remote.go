package plugintest

import (
	"context"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc"

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/candidate"
)

// Remote is how the kit reaches a plugin that runs elsewhere. The fields are those of
// the remote section of an instance in the server's config.
type Remote struct {
	// Address is host:port.
	Address string
	// CA, Cert and Key are PEM files: the authority that signs the plugin's certificate,
	// and the certificate and key of a server that may call the plugin.
	CA, Cert, Key string
	// ServerName is the name in the plugin's certificate; "" is the host of Address.
	ServerName string
}

// isRemote reports whether the kit does not start the plugin.
func (t *Target) isRemote() bool { return t.Remote.Address != "" }

// check returns an error for a target that names no plugin, or two.
func (t *Target) check() error {
	r := t.Remote
	_, _, portErr := net.SplitHostPort(r.Address)
	switch {
	case r == Remote{} && len(t.Command) == 0:
		return errors.New("there is no command to run")
	case r == Remote{} && t.Restart != nil:
		return errors.New("a restart is for a remote plugin: the kit restarts what it starts")
	case r == Remote{}:
		return nil
	case portErr != nil:
		return errors.New("the address of a remote plugin is host:port")
	case r.CA == "" || r.Cert == "" || r.Key == "":
		return errors.New("a remote plugin needs ca, cert and key: both sides show a certificate")
	case len(t.Command) > 0 || len(t.Env) > 0:
		return errors.New("a remote plugin is not started by the kit: it has no command and no environment")
	}
	_, err := candidate.Remote(r).Config()
	return err
}

// ofTheOperator is why most cases do not apply to a remote plugin.
const ofTheOperator = "not applicable: the process of a remote plugin belongs to its operator"

// notRemote has the cases that do not apply to a remote plugin, with the reason.
var notRemote = map[string]string{
	"started by hand, it says what it is and ends":  ofTheOperator,
	"serves the health of gRPC":                     "not applicable: the server does not call it at a remote plugin",
	"ends when it is told to":                       ofTheOperator,
	"ends when the host is gone":                    "not applicable: a remote plugin outlives its hosts",
	"says the same at every start":                  ofTheOperator,
	"works on after it was held up":                 ofTheOperator,
	"keeps its memory while instances come and go":  ofTheOperator,
	"logs no more than the server keeps":            "not applicable: the server does not read the log of a remote plugin",
	"has written nothing to standard output":        "not applicable: a remote plugin has no handshake line",
	"ends on SIGTERM":                               ofTheOperator,
	"leaves no process behind":                      ofTheOperator,
	"loses nothing when it is killed in the middle": "not applicable: the operator restarts a remote plugin, and the kit has no command for that (Restart)",
}

// notApplicable returns why a case does not apply to the target, or "".
func notApplicable(t *Target, name string) string {
	if !t.isRemote() || t.Restart != nil && name == "loses nothing when it is killed in the middle" {
		return ""
	}
	return notRemote[name]
}

// connect makes a connection as the server does, and releases the instance that an
// earlier connection may have left. After a restart the plugin has startLimit to answer.
func (c *check) connect() *candidate.Process {
	p, err := candidate.Remote(c.target.Remote).Dial()
	c.no(err, "connect to the plugin")
	c.own = append(c.own, p)
	c.no(c.answers(p), "call the plugin at "+c.target.Remote.Address+", where certificates of both sides must fit")
	c.own = c.own[:len(c.own)-1]
	return p
}

// startLimit is how long a remote plugin may take to answer.
const startLimit = 15 * time.Second

// answers releases the instance until the plugin answers. The error is the last one.
func (c *check) answers(p *candidate.Process) error {
	for end := time.Now().Add(startLimit); ; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := c.call(startLimit)
		_, err := p.Plugin().Close(ctx, &pluginv1.CloseRequest{InstanceId: instanceID}, grpc.WaitForReady(false))
		cancel()
		if err == nil || time.Now().After(end) || c.ctx.Err() != nil {
			return err
		}
	}
}

// release closes the instance of the kit, so that nothing stays at a remote plugin.
func (k *kit) release(p *candidate.Process) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	_, _ = p.Plugin().Close(ctx, &pluginv1.CloseRequest{InstanceId: instanceID}) // it may be unreachable
}

// hangUp closes the connection that serves; the next call makes another one.
func (c *check) hangUp() {
	if c.serves != nil {
		c.serves.Kill()
	}
	c.serves, c.notifies, c.matches, c.operates = nil, nil, nil, nil
}

// crash ends a process at once: with a signal, or as the operator of a remote plugin.
func (c *check) crash(p *candidate.Process) {
	if c.target.isRemote() {
		c.no(c.target.Restart(), "restart the plugin")
	}
	p.Kill()
}
