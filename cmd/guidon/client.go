package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// serverFlags are the flags of commands that call a running server: its address
// and a personal key.
type serverFlags struct {
	Server  string `help:"URL of the server's admin address; default: http.admin_address of the config." placeholder:"URL"`
	CA      string `name:"ca" help:"File with the authorities to trust for https, instead of the system's." type:"existingfile" placeholder:"FILE"`
	Cert    string `name:"client-cert" help:"Client certificate, for a server with admin_tls.client_ca_file." type:"existingfile" placeholder:"FILE"`
	CertKey string `name:"client-key" help:"Key of the client certificate." type:"existingfile" placeholder:"FILE"`
	Key     string `env:"GUIDON_PERSONAL_KEY" help:"Personal key (phx_) with scope plugin:read or plugin:write; prefer the environment to the command line." placeholder:"PHX"`
}

// callTimeout bounds one request.
const callTimeout = time.Minute

// call sends a request and decodes the answer into out. An error answer becomes an
// error with its detail and code.
func (f serverFlags) call(e *env, method, path string, out any) error {
	if f.Key == "" {
		return errors.New("a personal key is needed: set GUIDON_PERSONAL_KEY (guidon key create --user 1 --scopes plugin:write makes one)")
	}
	base, socket, err := f.baseURL(e)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, base+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+f.Key)
	client, err := f.newClient(socket)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return &remote.UnreachableError{Err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		refused := &remote.Error{}
		if json.Unmarshal(body, refused) != nil {
			refused = &remote.Error{}
		}
		refused.Status = res.StatusCode
		return refused
	}
	return json.Unmarshal(body, out)
}

// newClient returns a client that connects to a Unix socket, or over TCP for an
// empty path. It does not follow redirects, which would send the key elsewhere.
func (f serverFlags) newClient(socket string) (*http.Client, error) {
	trust, err := f.tlsConfig()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSClientConfig: trust}
	if socket != "" {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// tlsConfig returns what to trust and to present over https.
func (f serverFlags) tlsConfig() (*tls.Config, error) {
	c, err := remote.TLSConfig(f.CA)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	if f.Cert != "" || f.CertKey != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.CertKey)
		if err != nil {
			return nil, fmt.Errorf("--client-cert and --client-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// baseURL returns --server, or the admin address in the config: an URL, and the
// path of the socket if the address is one. An unspecified address becomes the
// loopback address. Mistakes in the other sections of the config are a warning.
func (f serverFlags) baseURL(e *env) (base, socket string, err error) {
	if f.Server != "" {
		u, err := url.Parse(f.Server)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "", "", fmt.Errorf("--server: %q is not an http or https URL", f.Server)
		}
		return strings.TrimSuffix(f.Server, "/"), "", nil
	}
	cfg, broken, err := app.LoadHTTP(e.path(), os.Environ())
	if err != nil {
		return "", "", fmt.Errorf("%w\n--server names a server without the config", err)
	}
	if broken != nil { // the server goes on with what it has read before
		e.warn("%v\nthe command goes on with http.admin_address %s", broken, cfg.AdminAddress)
	}
	if cfg.AdminAddress == "" {
		return "", "", errors.New("http.admin_address of the config is empty: a server without an admin address cannot be controlled")
	}
	base, socket, err = remote.LocalURL(cfg.AdminAddress, cfg.AdminTLS.Enabled())
	if err != nil {
		return "", "", fmt.Errorf("http.admin_address: %w", err)
	}
	return base, socket, nil
}
