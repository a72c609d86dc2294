// Package inprocess runs requests with the handler of a server in the same process, without
// a connection: commands on a data directory that no server uses, and the setup of a first
// run.
package inprocess

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/valyala/fasthttp"
)

// mark is the key of the value that marks requests of this package.
type mark struct{}

// Is reports whether a request was made by this package.
func Is(c *fasthttp.RequestCtx) bool { return c.UserValue(mark{}) != nil }

// Call runs a management request with a personal key. The rate of a key does not count it.
// handler returns the handler; it may be called before the server listens.
func Call(handler func() (fasthttp.RequestHandler, error), method, path, key string, body []byte) (status int, answer []byte, err error) {
	answered, err := serve(handler, func(r *fasthttp.Request) error {
		r.Header.SetMethod(method)
		r.SetRequestURI(path)
		r.Header.SetHost("localhost")
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.SetContentType("application/json")
		r.SetBody(body)
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	return answered.StatusCode(), answered.Body(), nil
}

// RoundTrip is Call for a request of any path, with its headers and its body. The body of
// the answer is complete when it returns.
func RoundTrip(handler func() (fasthttp.RequestHandler, error), req *http.Request) (*http.Response, error) {
	answered, err := serve(handler, func(r *fasthttp.Request) error {
		r.Header.SetMethod(req.Method)
		r.SetRequestURI(req.URL.RequestURI())
		r.Header.SetHost(req.URL.Host)
		for name, values := range req.Header {
			for _, value := range values {
				r.Header.Add(name, value)
			}
		}
		if req.Body == nil {
			return nil
		}
		body, err := io.ReadAll(req.Body)
		r.SetBody(body)
		return errors.Join(err, req.Body.Close())
	})
	if err != nil {
		return nil, err
	}
	res := &http.Response{StatusCode: answered.StatusCode(), ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: req}
	for name, value := range answered.Header.All() {
		res.Header.Add(string(name), string(value))
	}
	body := answered.Body()
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, nil
}

// serve runs the request that fill makes.
func serve(handler func() (fasthttp.RequestHandler, error), fill func(*fasthttp.Request) error) (*fasthttp.Response, error) {
	handle, err := handler()
	if err != nil {
		return nil, err
	}
	var c fasthttp.RequestCtx
	c.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil)
	if err := fill(&c.Request); err != nil {
		return nil, err
	}
	c.SetUserValue(mark{}, true)
	handle(&c)
	return &c.Response, nil
}
