package body_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/body"
	"github.com/valyala/fastjson"
)

// mustBeGood fails unless p keeps the promises of Payload, or err is one of
// the documented failures of Decode.
func mustBeGood(t *testing.T, p *body.Payload, err error) {
	t.Helper()
	if err != nil {
		if k := fault.KindOf(err); k != fault.Malformed && k != fault.TooLarge {
			t.Fatalf("Decode: %v", err)
		}
		return
	}
	if !utf8.Valid(p.JSON) || !json.Valid(p.JSON) {
		t.Fatalf("not JSON in UTF-8: %q", p.JSON)
	}
	v, err := fastjson.ParseBytes(p.JSON)
	if err != nil {
		t.Fatalf("fastjson rejects %q: %v", p.JSON, err)
	}
	if strings.ContainsRune(string(v.MarshalTo(nil)), 0) {
		t.Fatalf("a NUL is in %q", p.JSON)
	}
}

func FuzzDecode(f *testing.F) {
	text := []byte(`{"event":"a","properties":{"token":"phc_a","$x":[1,2.5e3,null,true,"\u00e9"]}}`)
	f.Add("", "", "", text)
	f.Add("compression=gzip-js&_=1795229085410", "text/plain", "", gz(text))
	f.Add("", "application/json", "gzip", gz(text))
	f.Add("", form, "", []byte("data="+base64.StdEncoding.EncodeToString(text)+"&ip=1"))
	f.Add("compression=lz64", form, "", []byte("data=N4IgpgbglgdlD6AHCBDALiAXAbQLogF8g"))
	f.Add("data=e30%3D", "", "", []byte{})
	f.Add("", "", "deflate", deflated(text))
	f.Add("", "", "br", brotlied(text))
	f.Add("", "", "zstd", zstded(text))
	f.Add("", "multipart/form-data; boundary=X", "", []byte("--X\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n{}\r\n--X--\r\n"))
	f.Add("", "", "", []byte("{\"a\":NaN,\"b\":[-Infinity],\"c\":\"\xed\xa0\xbd\xed\xb2\xbb\xff\\ud83d\\u0000\n\"}"))
	f.Fuzz(func(t *testing.T, query, kind, encoding string, raw []byte) {
		if strings.ContainsAny(query+kind+encoding, "\r\n\x00") {
			return
		}
		c := request(sent{query: query, kind: kind, encoding: encoding, body: raw})
		defer release(c)
		p, err := c.decode(body.Limits{InflatedBytes: 1 << 16, Depth: 50})
		mustBeGood(t, p, err)
	})
}

func FuzzLZString(f *testing.F) {
	f.Add("N4IgpgbglgdlD6AHCBDALiAXAbQLogF8g===")
	f.Add("NoIg5g9gTlCuAOBjAFgewHYC4g==")
	f.Add("Q===")
	f.Fuzz(func(t *testing.T, s string) {
		c := request(sent{query: "compression=lz64", body: []byte(s)})
		defer release(c)
		p, err := c.decode(body.Limits{InflatedBytes: 1 << 16, Depth: 50, Unchecked: true})
		if err == nil && len(p.JSON) > 1<<16 {
			t.Fatalf("%d bytes, past the limit", len(p.JSON))
		}
	})
}

// FuzzSanitize compares Decode with the standard library: valid JSON in valid
// UTF-8 stays as sent, and every result is valid.
func FuzzSanitize(f *testing.F) {
	for _, s := range []string{"plain", "\xed\xa0\xbd\xed\xb2\xbb", "\xed\xa0\xbd", "\xf0\x9f\x92\xbb", `\ud83d\udcbb`, `\udcbb`, `\u0000`, `\\u0000`, "\x01", "\xff\xc3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		in := []byte(`["` + s + `"]`)
		c := request(sent{body: in})
		defer release(c)
		p, err := c.decode(limits)
		mustBeGood(t, p, err)
		if err != nil {
			if json.Valid(in) && utf8.Valid(in) && !strings.Contains(s, "[") {
				t.Fatalf("%q is valid and rejected: %v", in, err)
			}
			return
		}
		fine := json.Valid(in) && utf8.Valid(in) && !strings.Contains(s, `\u`)
		if fine && string(p.JSON) != string(in) {
			t.Fatalf("%q is valid and became %q", in, p.JSON)
		}
	})
}
