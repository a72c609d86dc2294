// Package wire speaks the HTTP interface of ClickHouse, with rows in RowBinary.
package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

// Client speaks the HTTP interface of a ClickHouse. It is safe for concurrent use.
type Client struct {
	http           *http.Client
	url            string
	user, password string
	params         url.Values
	insertion      time.Duration // insertionTimeout, but in tests
}

// New reads a URL such as clickhouse://user:password@host:8123/database. With
// clickhouses:// the parameter ca_file names certificates to trust in place of the system's.
func New(raw string) (*Client, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("not a URL")
	}
	scheme := map[string]string{"clickhouse": "http", "clickhouses": "https"}[u.Scheme]
	if scheme == "" || u.Host == "" {
		return nil, errors.New("not a URL such as clickhouse://user:password@host:8123/database, or clickhouses:// for TLS")
	}
	trust, err := readTrust(u)
	if err != nil {
		return nil, err
	}
	if u.Port() == "" {
		u.Host += map[string]string{"http": ":8123", "https": ":8443"}[scheme]
	}
	c := &Client{url: scheme + "://" + u.Host + "/", user: "default", insertion: insertionTimeout, params: url.Values{"wait_end_of_query": {"1"}, "max_query_size": {"67108864"}}}
	if u.User != nil {
		c.user = u.User.Username()
		c.password, _ = u.User.Password()
	}
	if name := strings.Trim(u.Path, "/"); name != "" {
		c.params.Set("database", name)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 8
	transport.Proxy = nil
	transport.TLSClientConfig = trust
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

func readTrust(u *url.URL) (*tls.Config, error) {
	query := u.Query()
	for name := range query {
		if name != "ca_file" {
			return nil, fmt.Errorf("unknown parameter %q: there is ca_file", name)
		}
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if !query.Has("ca_file") {
		return c, nil
	}
	if u.Scheme != "clickhouses" {
		return nil, errors.New("ca_file needs clickhouses://")
	}
	pem, err := os.ReadFile(query.Get("ca_file"))
	if err != nil {
		return nil, fmt.Errorf("read ca_file: %w", err)
	}
	if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("there is no certificate in ca_file")
	}
	return c, nil
}

// Bounds of a statement that has no deadline. An insertion has less: its node holds the lock
// of the outbox, for which all others wait, and one without an answer is repeated.
const (
	requestTimeout   = 10 * time.Minute
	insertionTimeout = time.Minute
)

// send runs a statement. With data the statement is in the URL. The body of the answer must
// be closed.
func (c *Client) send(ctx context.Context, statement string, data []byte, settings map[string]string) (io.ReadCloser, error) {
	query := url.Values{}
	for name, values := range c.params {
		query[name] = values
	}
	for name, value := range settings {
		query.Set(name, value)
	}
	body := data
	if data == nil {
		body = []byte(statement)
	} else {
		query.Set("query", statement)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-ClickHouse-User", c.user)
	if c.password != "" {
		req.Header.Set("X-ClickHouse-Key", c.password)
	}
	req.Header.Set("User-Agent", "guidon")
	res, err := c.http.Do(req)
	if err != nil {
		return nil, unavailable(errors.Unwrap(err))
	}
	if res.StatusCode == http.StatusOK && res.Header.Get("X-ClickHouse-Exception-Code") == "" {
		return res.Body, nil
	}
	text, _ := io.ReadAll(io.LimitReader(res.Body, 600))
	_ = res.Body.Close()
	return nil, refused(res, text)
}

// unavailable is the error of a server that cannot be reached.
func unavailable(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return errors.Join(&Error{Text: "ClickHouse does not answer"}, err)
	}
	return &Error{Text: fmt.Sprintf("ClickHouse is not reachable: %v", err)}
}

// Error is the answer of a server that refused a statement, or the lack of one.
type Error struct {
	Code    int // of ClickHouse; 0 without one
	Text    string
	Reached bool // false if there was no answer
}

func (e *Error) Error() string { return e.Text }

// Unwrap makes every failure an outage: the worker waits and dead-letters nothing.
func (e *Error) Unwrap() error {
	return fault.New(fault.Unavailable, "events_unavailable", "The event store is not available.")
}

var refusal = regexp.MustCompile(`^Code: (\d+)[,.] (?:e\.displayText\(\) = )?(?:DB::Exception: )?`)

func refused(res *http.Response, answer []byte) error {
	text := strings.TrimSpace(string(answer))
	code, _ := strconv.Atoi(res.Header.Get("X-ClickHouse-Exception-Code"))
	if at := refusal.FindStringSubmatchIndex(text); at != nil {
		code, _ = strconv.Atoi(text[at[2]:at[3]])
		text = strings.TrimSuffix(text[at[1]:], ", e.what() = DB::Exception")
	}
	if code == 0 {
		return &Error{Text: "ClickHouse, or a proxy, answered " + res.Status, Reached: true}
	}
	return &Error{Code: code, Text: fmt.Sprintf("ClickHouse refused (%d): %s", code, text), Reached: true}
}

// Exec runs a statement without rows. With data, which is then not nil, it is an insertion.
func (c *Client) Exec(ctx context.Context, statement string, data []byte, settings map[string]string) error {
	timeout := requestTimeout
	if data != nil {
		timeout = c.insertion
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	body, err := c.send(ctx, statement, data, settings)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, body)
	_ = body.Close()
	return err
}

// Query calls read for each row of a statement. read must read the whole row.
func (c *Client) Query(ctx context.Context, statement string, read func(r *Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body, err := c.send(ctx, statement+" FORMAT RowBinary", nil, nil)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	r := NewReader(body)
	for r.More() {
		if err := read(r); err != nil {
			return err
		}
	}
	return r.Err
}
