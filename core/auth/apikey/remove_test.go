package apikey_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/auth/apikey"
)

const secret = "phx_abcdefghijklmnopqrstuvwxyz0123456789-_ABCDE"

var projectSecret = "phs_" + secret[4:]

func TestRemoveSecrets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, token, want string }{
		"a key field":               {`{"api_key":"` + secret + `","event":"a"}`, "", `{"api_key":"(personal key)","event":"a"}`},
		"a short key in a field":    {`{"token" : "phx_test"}`, "", `{"token" : "(personal key)"}`},
		"white space around a key":  {`{"$token":" phx_test "}`, "", `{"$token":" (personal key) "}`},
		"fields of properties":      {`{"properties":{"personal_api_key":"phx_a","secret_api_key":"phx_b"}}`, "", `{"properties":{"personal_api_key":"(personal key)","secret_api_key":"(personal key)"}}`},
		"inside of a URL":           {`{"url":"https://a/?k=` + secret + `&x=1"}`, "", `{"url":"https://a/?k=(personal key)&x=1"}`},
		"two in one text":           {`["` + secret + ` ` + secret + `"]`, "", `["(personal key) (personal key)"]`},
		"the key of the request":    {`{"note":"phx_short"}`, "phx_short", `{"note":"(personal key)"}`},
		"a longer text than a key":  {`{"note":"phx_shorter"}`, "phx_short", `{"note":"phx_shorter"}`},
		"an escaped key":            {`{"note":"\u0070hx\u005F` + secret[4:] + `"}`, "", `{"note":"(personal key)"}`},
		"an escaped name":           {`{"\u0074oken":"phx_test"}`, "", `{"token":"(personal key)"}`},
		"an escaped backslash":      {`{"note":"\\u0070 phx_"}`, "", `{"note":"\\u0070 phx_"}`},
		"another word":              {`{"note":"phx_airport","graph_x":"phx"}`, "", `{"note":"phx_airport","graph_x":"phx"}`},
		"a project key":             {`{"api_key":"phc_abcdefghijklmnopqrstuvwxyz0123456789"}`, "", `{"api_key":"phc_abcdefghijklmnopqrstuvwxyz0123456789"}`},
		"a secret key":              {`{"note":"see ` + projectSecret + `!","secret_key":"phs_a"}`, "", `{"note":"see (secret key)!","secret_key":"(secret key)"}`},
		"keys of both kinds":        {`["` + projectSecret + `","` + secret + `","` + projectSecret + `"]`, "", `["(secret key)","(personal key)","(secret key)"]`},
		"an escaped secret key":     {`{"note":"\u0070hs\u005F` + projectSecret[4:] + `"}`, "", `{"note":"(secret key)"}`},
		"another word with phs":     {`{"note":"phs_airport","graphs_x":1}`, "", `{"note":"phs_airport","graphs_x":1}`},
		"a prefix at the end":       {`"phx_`, "", `"phx_`},
		"a name that ends like one": {`{"airport":"phx_test","x":"token"}`, "", `{"airport":"phx_test","x":"token"}`},
	} {
		if got := apikey.RemoveSecrets([]byte(c.in), c.token); string(got) != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if has := strings.Contains(c.in, "phx_") || strings.Contains(c.in, "phs_"); apikey.MayHoldSecret([]byte(c.in)) != has {
			t.Errorf("%s: MayHoldSecret is not %v", name, has)
		}
	}
}

func FuzzRemoveSecrets(f *testing.F) {
	f.Add([]byte(`{"token":"`+secret+`","a":["\u0070hx_a\\u0070"]}`), "phx_a")
	f.Add([]byte(`"ph`), "")
	f.Fuzz(func(t *testing.T, data []byte, token string) {
		out := apikey.RemoveSecrets(data, token)
		if json.Valid(data) && !json.Valid(out) {
			t.Fatalf("%q becomes %q, which is not JSON", data, out)
		}
		if again := apikey.RemoveSecrets(out, token); !bytes.Equal(again, out) {
			t.Fatalf("%q becomes %q", out, again)
		}
	})
}

func BenchmarkMayHoldSecret(b *testing.B) {
	body := []byte(`{"event":"$pageview","properties":{"token":"phc_abcdefghijklmnopqrstuvwxyz0123456789-_ABCDE","$current_url":"https://shop.example/photos/iphone","$browser":"Chrome","distinct_id":"u1","text":"` + strings.Repeat("some graph text ", 30) + `"}}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if apikey.MayHoldSecret(body) {
			b.Fatal("found a key")
		}
	}
}
