package remote

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// send returns the answer to a request. The server does not execute a request that it
// answers with 429, so send repeats it after the time that the answer names, as long as
// ctx permits; then it returns that answer.
func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	for {
		req, err := c.newRequest(ctx, method, path, body)
		if err != nil {
			return nil, err
		}
		res, err := c.http.Do(req)
		if err != nil {
			return nil, &UnreachableError{Err: err}
		}
		wait, ok := retryAfter(res)
		deadline, bounded := ctx.Deadline()
		if !ok || bounded && time.Until(deadline) < wait {
			return res, nil
		}
		_ = res.Body.Close()
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, &UnreachableError{Err: ctx.Err()}
		}
	}
}

// retryAfter returns how long to wait before the request is repeated, false if the
// answer is no 429 with that time.
func retryAfter(res *http.Response) (time.Duration, bool) {
	seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
	return time.Duration(min(max(seconds, 1), 3600)) * time.Second, err == nil && res.StatusCode == http.StatusTooManyRequests
}
