package sdk

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// FromHTTP returns nil for an answer with a 2xx status, and otherwise an error
// of the class that the status stands for, with Retry-After and the start of
// the body. It does not close the body.
//
// 429, and 503 with a Retry-After, are Throttled; 408, 425 and the other 5xx
// are Transient; 401, 403 and 404 are errors of the config; everything else is
// Permanent.
func FromHTTP(resp *http.Response) error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	e := &Error{
		Class: ClassPermanent, Code: fmt.Sprintf("http_%d", resp.StatusCode), Source: SourceDownstream,
		Message: message(resp), RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
	}
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable && e.RetryAfter > 0:
		e.Class = ClassThrottled
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code >= 500:
		e.Class = ClassTransient
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusNotFound:
		e.Class = ClassConfig
	}
	return e
}

// message is the status and the first line of the body.
func message(resp *http.Response) string {
	if resp.Body == nil {
		return resp.Status
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(string(text), "")), "\n")
	if line == "" {
		return resp.Status
	}
	return resp.Status + ": " + line
}

// retryAfter reads seconds or a date; 0 for neither and for the past.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return time.Duration(max(0, seconds)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
