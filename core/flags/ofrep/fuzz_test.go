package ofrep_test

import (
	"encoding/json"
	"testing"

	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// FuzzRequest sends any body to both paths: the answer is JSON, has what the
// protocol requires, and is never the fault of the server.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		`{"context":{"targetingKey":"u","groups":{"company":"a"},"groupProperties":{"company":{"plan":null}},"plan":"é\ud83d\ude00"}}`,
		`{"context":{"targetingKey":"u","groups":{"company":1e400},"group_properties":7,"$anon_distinct_id":"a"}}`,
		`{"context":{"targetingKey":"\u0000\ud800","targetingKey":7,"groups":[]}}`, `{"context":[]}`, `[{"context":{}}]`, `data=eyJ9`, ``,
		`{"context":{"targetingKey":"u","$feature_enrollment/enrolled":{"a":[[[[]]]]}}}`,
	} {
		f.Add([]byte(body), "static", "flagConfigEtag=1&flagConfigLastModified=2026-01-01T00:00:00Z")
		f.Add([]byte(body), "a%2F%C3%BC%20", "flagConfigEtag=%00&flagConfigLastModified=1e30")
	}
	cfg := web.DefaultConfig()
	cfg.AccessLog = web.LogServerErrors
	s, err := web.New(cfg, webtest.DefaultKeys(), zap.NewNop(), nil)
	if err != nil {
		f.Fatal(err)
	}
	s.Mount(newHTTP(f, sample(), people{}))
	handle, err := s.Handler()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte, key, query string) {
		for _, path := range []string{pathFlags + "?" + query, pathFlags + "/" + key + "?" + query} {
			var ctx fasthttp.RequestCtx
			ctx.Request.Header.SetMethod("POST")
			ctx.Request.SetRequestURI(path)
			ctx.Request.Header.Set("X-API-Key", "phc_test")
			ctx.Request.SetBody(body)
			handle(&ctx)
			status, text := ctx.Response.StatusCode(), ctx.Response.Body()
			if status >= 500 || !json.Valid(text) {
				t.Errorf("%s %q: %d %s", path, body, status, text)
			}
			ctx.ResetUserValues()
		}
	})
}
