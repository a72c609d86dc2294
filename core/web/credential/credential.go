// Package credential finds the keys that a request carries: in a header, in the
// body and in the query. It neither checks them nor finds their holders.
package credential

import (
	"bytes"
	"strings"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/web/body"
)

// PersonalField is the name of a personal key in a body or a query.
const PersonalField = "personal_api_key"

const (
	headerContentEncoding = "Content-Encoding"
	// headerProject names the project of a management request by its project key.
	// posthog-rs sends it instead of the query parameter token.
	headerProject = "X-PostHog-Project-Api-Key"
)

var (
	headerAuthorization = []byte("Authorization")
	bearer              = []byte("bearer ")
)

// Bearer returns the key of an Authorization: Bearer header. It does not allocate:
// the key is part of the request.
func Bearer(r *fasthttp.Request) (key string, ok bool) {
	h := r.Header.PeekBytes(headerAuthorization)
	if len(h) < 7 || !bytes.EqualFold(h[:7], bearer) {
		return "", false
	}
	key = strings.TrimSpace(unsafe.String(unsafe.SliceData(h[7:]), len(h)-7))
	return key, key != ""
}

// MayBeInBody reports whether the body is searched for a personal key: only a
// small body that is not compressed.
func MayBeInBody(r *fasthttp.Request) bool {
	n := r.Header.ContentLength()
	return n > 0 && n <= body.MaxSearchBytes && len(r.Header.Peek(headerContentEncoding)) == 0
}

// Personal returns the personal key of a request and the name of its place, which
// is empty without a key. The first place with a key decides: the header, the
// body, the query.
func Personal(r *fasthttp.Request) (key, place string) {
	if key, ok := Bearer(r); ok {
		return key, "Authorization header"
	}
	if MayBeInBody(r) {
		if key := body.FindField(r, PersonalField); key != "" {
			return key, "body"
		}
	}
	if key := string(r.URI().QueryArgs().Peek(PersonalField)); key != "" {
		return strings.TrimSpace(key), "query string"
	}
	return "", ""
}

// Project returns the project key by which a management request names its
// project: the query parameter token, else the header
// X-PostHog-Project-Api-Key; empty without one.
func Project(r *fasthttp.Request) string {
	if key := r.URI().QueryArgs().Peek("token"); len(key) > 0 {
		return string(key)
	}
	return string(r.Header.Peek(headerProject))
}
