package framing

import "github.com/valyala/fasthttp"

// Refused is the method of requests that Guard has refused. No client can send
// it: it is no token.
const Refused = "(framing)"

// Guard returns a function for Server.HeaderReceived. It marks a request that
// Check refuses, before its body is read: the request has the method Refused and
// no body, and its connection closes after the answer. counted is called for
// each.
func Guard(counted func()) func(*fasthttp.RequestHeader) fasthttp.RequestConfig {
	return func(h *fasthttp.RequestHeader) (none fasthttp.RequestConfig) {
		if Check(h.RawHeaders(), h.IsHTTP11()) == "" {
			return none
		}
		counted()
		h.SetContentLength(0)
		h.Del(fasthttp.HeaderExpect)
		h.SetMethod(Refused)
		h.SetConnectionClose()
		return none
	}
}
