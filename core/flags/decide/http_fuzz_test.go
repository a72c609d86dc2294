package decide_test

import (
	"encoding/json"
	"testing"

	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// FuzzDecide sends any body to both paths: the answer is JSON, and never the
// server's fault.
func FuzzDecide(f *testing.F) {
	for _, body := range []string{
		`{"token":"phc_test","distinct_id":"u","groups":{"company":"a"},"person_properties":{"email":"é\ud83d\ude00"},"group_properties":{"company":{"plan":null}}}`,
		`[{"api_key":"phc_test","distinct_id":1e400}]`, `{"token":"phc_test","distinct_id":{"a":[]},"flag_keys_to_evaluate":[1,null,"on"]}`,
		`{"token":"phc_test","disable_flags":"yes"}`, `data=eyJ9`, `{"token":"phc_test","distinct_id":"\u0000\ud800"}`, ``,
	} {
		f.Add([]byte(body), "v=3")
		f.Add([]byte(body), "v=2&config=true&compression=gzip")
	}
	d, _ := decider(f, explainProject(), around(&memoryStore{}))
	cfg := web.DefaultConfig()
	cfg.AccessLog = web.LogServerErrors
	s, err := web.New(cfg, webtest.DefaultKeys(), zap.NewNop(), nil)
	if err != nil {
		f.Fatal(err)
	}
	s.Mount(decide.NewHTTP(d, nil))
	handle, err := s.Handler()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte, query string) {
		for _, path := range []string{"/decide/?", "/flags/?"} {
			var ctx fasthttp.RequestCtx
			ctx.Request.Header.SetMethod("POST")
			ctx.Request.SetRequestURI(path + query)
			ctx.Request.SetBody(body)
			handle(&ctx)
			if status := ctx.Response.StatusCode(); status >= 500 || !json.Valid(ctx.Response.Body()) {
				t.Errorf("%s%s %q: %d %s", path, query, body, status, ctx.Response.Body())
			}
			ctx.ResetUserValues()
		}
	})
}
