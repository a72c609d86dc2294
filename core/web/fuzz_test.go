package web_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/envelope"
)

func FuzzToken(f *testing.F) {
	f.Add([]byte(`{"api_key":"phc_a","batch":[{"token":"x"}]}`))
	f.Add([]byte(`[{"properties":{"token":"phc_a"}},{"$token":"phc_a"},null,7]`))
	f.Add([]byte(`{"batch":"[]","project_id":[1]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := request(sent{body: body})
		defer release(c)
		p, err := web.Body(c, limits)
		if err != nil {
			return
		}
		env, err := envelope.Read(p.JSON)
		if err != nil {
			if k := fault.KindOf(err); k != fault.Malformed && k != fault.Unauthenticated {
				t.Fatalf("Read(%q): %v", body, err)
			}
			return
		}
		token, err := web.Token(c, p, &env)
		if err != nil && !fault.Is(err, fault.Unauthenticated) || err == nil && token == "" {
			t.Fatalf("Token(%q) = %q, %v", body, token, err)
		}
		_ = web.ProjectID(p, &env)
	})
}

func FuzzFields(f *testing.F) {
	f.Add(jsonType, []byte(`{"key":"a","filters":{"groups":[{"properties":[]}]},"tags":["a",1],"steps":[{"url":"x"}],"n":12,"n":"13"}`))
	f.Add(form, []byte("key=a&filters=%7B%7D&tags=a&tags=b"))
	f.Add("multipart/form-data; boundary=X", []byte("--X\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\n{}\r\n--X--\r\n"))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		if strings.ContainsAny(kind, "\r\n\x00") {
			return
		}
		c := request(sent{kind: kind, body: body})
		defer release(c)
		r, err := web.Decode(c, limits)
		if err != nil {
			if fault.KindOf(err) == fault.Internal {
				t.Fatalf("Decode: %v", err)
			}
			return
		}
		for _, n := range r.Names() {
			if !json.Valid(r.Raw(n)) {
				t.Fatalf("%q is not JSON: %q", n, r.Raw(n))
			}
			r.String(n)
			r.Bool(n)
			r.Int(n)
			r.Time(n)
			r.UUID(n)
			r.Strings(n)
			r.Any(n)
			r.Sub(n)
			for _, item := range r.Items(n).Value {
				item.String("url")
			}
		}
		if err := r.Err(); err != nil && !fault.Is(err, fault.Invalid) {
			t.Fatalf("Err: %v", err)
		}
	})
}
