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

// remote is where a running server is and how to be let in, for the verbs that
// ask it instead of its files.
type remote struct {
	Server string `help:"Where the server is; default: http.address of the config." placeholder:"URL"`
	Key    string `env:"GUIDON_PERSONAL_KEY" help:"A personal key (phx_) that may do it; better in the environment than on the command line." placeholder:"PHX"`
}

// remoteTimeout bounds one question.
const remoteTimeout = time.Minute

// ask asks the server and decodes its answer. What the server refuses is an
// error in its words.
func (r remote) ask(e *env, method, path string, out any) error {
	if r.Key == "" {
		return errors.New("a personal key is needed: set GUIDON_PERSONAL_KEY (guidon key create --user 1 --scopes plugin:write makes one)")
	}
	base, err := r.base(e)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), remoteTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, base+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.Key)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // a key goes nowhere else
	res, err := client.Do(req)
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

func (r remote) base(e *env) (string, error) {
	if r.Server != "" {
		u, err := url.Parse(r.Server)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "", fmt.Errorf("--server: %q is not an http or https URL", r.Server)
		}
		return strings.TrimSuffix(r.Server, "/"), nil
	}
	cfg, err := e.config()
	if err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(cfg.HTTP.Address)
	if err != nil {
		return "", fmt.Errorf("http.address: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}
