package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Lines returns the body and the header of the answer to a GET, which is not JSON. It
// fails as Do does.
func (c *Client) Lines(ctx context.Context, path string) ([]byte, http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	res, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, answerBytes+1))
	switch {
	case err != nil:
		return nil, nil, &UnreachableError{Err: err}
	case len(answer) > answerBytes:
		return nil, nil, fmt.Errorf("the answer is larger than %d MiB", answerBytes>>20)
	case res.StatusCode != http.StatusOK:
		return nil, nil, refusal(res.StatusCode, answer)
	}
	return answer, res.Header, nil
}

// URL returns the address of the server, without a slash at the end.
func (c *Client) URL() string { return c.context.URL }

// HTTP returns the client for requests without the key.
func (c *Client) HTTP() *http.Client { return c.http }
