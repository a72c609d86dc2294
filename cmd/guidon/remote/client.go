package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// requestTimeout bounds one request, answerBytes its answer.
const (
	requestTimeout = time.Minute
	answerBytes    = 64 << 20
)

// Error is a request that the server refused.
type Error struct {
	// Status is the status of the answer.
	Status int
	// Code and Detail are those of the answer; "" if it has none.
	Code, Detail string
	// Attr is the field that is wrong; "" if the answer names none.
	Attr string
}

// Error returns the detail with the code, after the field.
func (e *Error) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("the server answered %d %s", e.Status, http.StatusText(e.Status))
	}
	text := e.Detail
	if e.Code != "" {
		text += " (" + e.Code + ")"
	}
	if e.Attr != "" {
		text = e.Attr + ": " + text
	}
	return text
}

// NotFound returns the error of an object that does not exist, without a server.
func NotFound(format string, args ...any) *Error {
	return &Error{Status: http.StatusNotFound, Detail: fmt.Sprintf(format, args...)}
}

// UnreachableError is a request that no server answered.
type UnreachableError struct{ Err error }

// Error names the cause.
func (e *UnreachableError) Error() string { return fmt.Sprintf("no server answers: %v", e.Err) }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Client calls the management API of a server. It is safe for concurrent use.
type Client struct {
	context   Context
	inProcess bool
	http      *http.Client
}

// NewClient returns a client for the server and the key of c. It checks that the URL
// is http or https, and that there is a key.
func NewClient(c Context) (*Client, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not an http or https URL", c.URL)
	}
	if c.Key == "" {
		return nil, errors.New("a personal key is needed: guidon login keeps one, or set GUIDON_PERSONAL_KEY; --local uses the database of a stopped server")
	}
	c.URL = strings.TrimSuffix(c.URL, "/")
	trust, err := TLSConfig(c.CA)
	if err != nil {
		return nil, err
	}
	// A redirect would send the key elsewhere.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{context: c, http: &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: trust}, CheckRedirect: stay,
	}}, nil
}

// TLSConfig returns the settings of https connections: at least TLS 1.2, and the
// authorities in the PEM file ca, or those of the system for "".
func TLSConfig(ca string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca == "" {
		return c, nil
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", ca)
	}
	return c, nil
}

// Project returns the path of the project of the context, with more after it.
func (c *Client) Project(more string) string {
	return "/api/projects/" + strconv.FormatInt(c.context.Project, 10) + "/" + more
}

// Do sends body as JSON, or no body for nil, and decodes the answer into out unless
// that is nil. It fails with *Error for any status but 200, 201 and 204, and with
// *UnreachableError without an answer. It repeats a request above the rate of the server.
func (c *Client) Do(ctx context.Context, method, path string, body, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	res, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, answerBytes+1))
	if err != nil {
		return &UnreachableError{Err: err}
	}
	if len(answer) > answerBytes {
		return fmt.Errorf("the answer is larger than %d MiB", answerBytes>>20)
	}
	switch res.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
	default:
		return refusal(res.StatusCode, answer)
	}
	if out == nil || len(answer) == 0 {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s is not the management API of Guidon: %w", c.context.URL, err)
	}
	return nil
}

func (c *Client) newRequest(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var text io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		text = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.context.URL+path, text)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.context.Key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// refusal reads an error answer.
func refusal(status int, answer []byte) error {
	var shape struct {
		Code, Detail string
		Attr         *string
	}
	e := &Error{Status: status}
	if json.Unmarshal(answer, &shape) != nil {
		return e
	}
	e.Code, e.Detail = shape.Code, shape.Detail
	if shape.Attr != nil {
		e.Attr = *shape.Attr
	}
	return e
}

// pageSize is how many results All asks for at once.
const pageSize = 200

// All returns the results of every page of the list at the path, at most limit of
// them; 0 for all.
func (c *Client) All(ctx context.Context, path string, query url.Values, limit int) ([]json.RawMessage, error) {
	var all []json.RawMessage
	for {
		q := url.Values{"limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(len(all))}}
		for name, values := range query {
			q[name] = values
		}
		var page struct {
			Results []json.RawMessage
			Next    *string
		}
		if err := c.Do(ctx, http.MethodGet, path+"?"+q.Encode(), nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Results...)
		if limit > 0 && len(all) >= limit {
			return all[:limit], nil
		}
		if page.Next == nil || len(page.Results) == 0 {
			return all, nil
		}
	}
}
