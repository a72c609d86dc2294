package credential_test

import (
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/web/credential"
)

func request(uri string, header ...string) *fasthttp.Request {
	r := &fasthttp.Request{}
	r.SetRequestURI(uri)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func TestBearer(t *testing.T) {
	for header, want := range map[string]string{"Bearer phx_a": "phx_a", "bearer  phx_a ": "phx_a", "Basic phx_a": "", "Bearer": "", "Bearer ": ""} {
		if got, ok := credential.Bearer(request("/", "Authorization", header)); got != want || ok != (want != "") {
			t.Errorf("Authorization %q: key %q, %v", header, got, ok)
		}
	}
	r := request("/", "Authorization", "Bearer phx_a")
	if n := testing.AllocsPerRun(100, func() { _, _ = credential.Bearer(r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTheQueryNamesTheProjectBeforeTheHeader(t *testing.T) {
	t.Parallel()
	const name = "X-PostHog-Project-Api-Key"
	for want, r := range map[string]*fasthttp.Request{
		"":      request("/flags/definitions"),
		"phc_q": request("/flags/definitions?token=phc_q", name, "phc_h"),
		"phc_h": request("/flags/definitions?token=", name, "phc_h"),
	} {
		if got := credential.Project(r); got != want {
			t.Errorf("the project key of %s is %q, want %q", r.RequestURI(), got, want)
		}
	}
}

func TestPersonalKeyPlaces(t *testing.T) {
	t.Parallel()
	for place, r := range map[string]*fasthttp.Request{
		"":                     request("/"),
		"query string":         request("/?personal_api_key=phx_a"),
		"Authorization header": request("/?personal_api_key=phx_b", "Authorization", "Bearer phx_a"),
	} {
		if key, got := credential.Personal(r); got != place || place != "" && key != "phx_a" {
			t.Errorf("key %q in %q, want phx_a in %q", key, got, place)
		}
	}
}
