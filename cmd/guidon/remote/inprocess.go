package remote

import (
	"cmp"
	"net/http"
)

// NewInProcess returns a client of a server within this process. The name of c is that of
// its database, and the URL is that of the server when it runs, for answers with links;
// http://localhost if it is empty.
func NewInProcess(c Context, server http.RoundTripper) *Client {
	c.URL = cmp.Or(c.URL, "http://localhost")
	return &Client{context: c, inProcess: true, http: &http.Client{Transport: server}}
}

// Place returns the address of the server, or the name of the database of a server within
// this process.
func (c *Client) Place() string {
	if c.inProcess {
		return c.context.Name
	}
	return c.context.URL
}
