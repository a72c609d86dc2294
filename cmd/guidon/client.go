package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// serverFlags are the flags of commands that call a running server: its address
// and a personal key.
type serverFlags struct {
	Server string `help:"URL of the server's admin address; default: http.admin_address of the config." placeholder:"URL"`
	Key    string `env:"GUIDON_PERSONAL_KEY" help:"Personal key (phx_) with scope plugin:read or plugin:write; prefer the environment to the command line." placeholder:"PHX"`
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
	res, err := newClient(socket).Do(req)
	if err != nil {
		return fmt.Errorf("no server answers: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		var refused struct{ Code, Detail string }
		if json.Unmarshal(body, &refused) != nil || refused.Detail == "" {
			return fmt.Errorf("the server answered %s", res.Status)
		}
		return fmt.Errorf("%s (%s)", refused.Detail, refused.Code)
	}
	return json.Unmarshal(body, out)
}

// newClient returns a client that connects to a Unix socket, or over TCP for an
// empty path. It does not follow redirects, which would send the key elsewhere.
func newClient(socket string) *http.Client {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	if socket != "" {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// baseURL returns --server, or the admin address in the config: an URL, and the
// path of the socket if the address is one. An unspecified address becomes the
// loopback address.
func (f serverFlags) baseURL(e *env) (base, socket string, err error) {
	if f.Server != "" {
		u, err := url.Parse(f.Server)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "", "", fmt.Errorf("--server: %q is not an http or https URL", f.Server)
		}
		return strings.TrimSuffix(f.Server, "/"), "", nil
	}
	cfg, err := e.config()
	if err != nil {
		return "", "", err
	}
	if cfg.HTTP.AdminAddress == "" {
		return "", "", errors.New("http.admin_address of the config is empty: a server without an admin address cannot be controlled")
	}
	if socket, ok := strings.CutPrefix(cfg.HTTP.AdminAddress, "unix:"); ok {
		return "http://localhost", socket, nil
	}
	host, port, err := net.SplitHostPort(cfg.HTTP.AdminAddress)
	if err != nil {
		return "", "", fmt.Errorf("http.admin_address: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), "", nil
}
