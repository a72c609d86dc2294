package clickhouse

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

	"github.com/guidonhq/guidon/sdk"
)

// client speaks the HTTP interface.
type client struct {
	http           *http.Client
	url            string
	user, password string
	timeout        time.Duration
}

// maxAnswer is the longest answer that is read.
const maxAnswer = 64 << 20

func newClient(c *config) (*client, error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, sdk.ConfigError("/ca_file", err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(pem) {
			return nil, sdk.ConfigError("/ca_file", errors.New("there is no certificate in this file"))
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.MaxIdleConnsPerHost = trust, c.Connections+2
	return &client{
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		url: c.URL, user: c.User, password: c.Password, timeout: c.Timeout,
	}, nil
}

// do runs a statement, which data belongs to, and returns the answer. It has an
// answer only when the whole statement was run.
func (c *client) do(ctx context.Context, statement string, data []byte, settings ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	query := url.Values{"wait_end_of_query": {"1"}}
	for i := 0; i+1 < len(settings); i += 2 {
		query.Set(settings[i], settings[i+1])
	}
	body := data
	if data == nil {
		body = []byte(statement)
	} else {
		query.Set("query", statement)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.url, "/")+"/?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, sdk.ConfigError("/url", errors.New("this is not a URL"))
	}
	req.Header.Set("X-ClickHouse-User", c.user)
	if c.password != "" {
		req.Header.Set("X-ClickHouse-Key", c.password)
	}
	req.Header.Set("User-Agent", "guidon")
	// All requests are idempotent: a connection that ClickHouse has
	// closed in the meantime is no failure. The header itself is not sent.
	req.Header["Idempotency-Key"] = nil
	res, err := c.http.Do(req)
	if err != nil {
		return nil, sdk.Transient(err)
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	_ = res.Body.Close()
	switch {
	case err != nil:
		return nil, sdk.Transient(err)
	case res.StatusCode != http.StatusOK || res.Header.Get("X-ClickHouse-Exception-Code") != "":
		return nil, classify(res, answer)
	case len(answer) > maxAnswer:
		return nil, sdk.Errorf(sdk.ClassPermanent, "answer_too_long", "the answer has more than %d bytes", maxAnswer)
	}
	return answer, nil
}

// The error codes of ClickHouse that need distinction.
const (
	codeUnknownColumn   = 16
	codeDuplicateColumn = 44
	codeTooManyRows     = 158
)

// refusal matches the begin of an error message of ClickHouse.
var refusal = regexp.MustCompile(`^Code: (\d+)[,.] (?:e\.displayText\(\) = )?(?:DB::Exception: )?`)

// classify returns the error of an answer without a result.
func classify(res *http.Response, answer []byte) error {
	text := strings.TrimSpace(string(answer[:min(len(answer), 600)]))
	code, _ := strconv.Atoi(res.Header.Get("X-ClickHouse-Exception-Code"))
	if at := refusal.FindStringSubmatchIndex(text); at != nil {
		code, _ = strconv.Atoi(text[at[2]:at[3]])
		text = strings.TrimSuffix(text[at[1]:], ", e.what() = DB::Exception")
	}
	out := &sdk.Error{Class: sdk.ClassTransient, Code: fmt.Sprintf("clickhouse_%d", code), Message: text, Source: sdk.SourceDownstream}
	if code == 0 {
		out.Code, out.Message = fmt.Sprintf("http_%d", res.StatusCode), "the server, or a proxy, answered "+res.Status
	}
	switch code {
	case 192, 193, 194, 516, 497, 164, 291: // authentication or authorization
		out.Class, out.Pointer = sdk.ClassConfig, "/user"
	case 81: // no such database
		out.Class, out.Pointer = sdk.ClassConfig, "/database"
	case 60, codeUnknownColumn, 47: // no such table, no such column
		out.Class, out.Pointer = sdk.ClassConfig, "/table"
	case 56, 36, 62, 170: // no such engine, its arguments, its syntax; no such cluster
		out.Class, out.Pointer = sdk.ClassConfig, "/engine"
	case 469: // a constraint an operator has added
		out.Class = sdk.ClassPermanent
	case 202, 241, 243, 252, 319: // too many queries, out of memory, disk full, too many parts, no quorum yet
		out.Class = sdk.ClassThrottled
	case 0:
		switch res.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			out.Class, out.Pointer = sdk.ClassConfig, "/user"
		case http.StatusNotFound, http.StatusMethodNotAllowed:
			out.Class, out.Pointer = sdk.ClassConfig, "/url"
		case http.StatusTooManyRequests:
			out.Class = sdk.ClassThrottled
		}
	}
	return out
}

// refusedWith reports whether ClickHouse refused with that code.
func refusedWith(err error, code int) bool {
	e, ok := errors.AsType[*sdk.Error](err)
	return ok && e.Code == fmt.Sprintf("clickhouse_%d", code)
}
