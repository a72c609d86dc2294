package body_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/body"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"
)

// sent is a request as a client library sends it.
type sent struct {
	method, query, kind, encoding string
	body                          []byte
}

var limits = body.Limits{InflatedBytes: 1 << 20, Depth: 64}

// exchange is a request and the decoder of its body.
type exchange struct {
	request fasthttp.Request
	decoder *body.Decoder
}

func request(s sent) *exchange {
	x := &exchange{decoder: body.NewDecoder()}
	x.request.Header.SetMethod(cmp.Or(s.method, fasthttp.MethodPost))
	x.request.SetRequestURI("/capture/?" + s.query)
	if s.kind != "" {
		x.request.Header.SetContentType(s.kind)
	}
	if s.encoding != "" {
		x.request.Header.Set("Content-Encoding", s.encoding)
	}
	x.request.SetBody(s.body)
	return x
}

func (x *exchange) decode(limits body.Limits) (*body.Payload, error) {
	return x.decoder.Decode(&x.request, limits)
}

func release(x *exchange) {
	x.decoder.Release()
	x.request.Reset()
}

func gz(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

func deflated(b []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

func brotlied(b []byte) []byte {
	return fasthttp.AppendBrotliBytes(nil, b)
}

func zstded(b []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(b, nil)
}

const (
	form  = "application/x-www-form-urlencoded"
	plain = "text/plain"
)

func TestDecodeRemovesEveryWrapping(t *testing.T) {
	t.Parallel()
	const text = `{"event":"paid ☕ 💻","properties":{"q":"a+b/c?d=e&f"}}`
	b64 := base64.StdEncoding.EncodeToString([]byte(text))
	unpadded := strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(text+" ")), "=")
	zip := gz([]byte(text))
	cases := map[string]struct {
		sent
		compression string
	}{
		"plain JSON":          {sent{kind: "application/json", body: []byte(text)}, ""},
		"JSON with a charset": {sent{kind: "application/json; charset=utf-8", body: []byte(text)}, ""},
		"no content type":     {sent{body: []byte(text)}, ""},
		"text/plain":          {sent{kind: plain, body: []byte(text)}, ""},
		"a byte order mark":   {sent{body: []byte("\xef\xbb\xbf" + text)}, ""},
		"JSON with the type of a form, as curl does": {sent{kind: form, body: []byte(text)}, ""},
		"gzip by header":                             {sent{kind: "application/json", encoding: "gzip", body: zip}, "gzip"},
		"gzip by parameter":                          {sent{query: "compression=gzip", kind: plain, body: zip}, "gzip"},
		"gzip-js by parameter":                       {sent{query: "compression=gzip-js", kind: plain, body: zip}, "gzip"},
		"gzip by its first bytes alone":              {sent{kind: plain, body: zip}, "gzip"},
		"gzip with no content type":                  {sent{body: zip}, "gzip"},
		"gzip with the type of a form":               {sent{kind: form, body: zip}, "gzip"},
		"gzip by header, undone by a proxy":          {sent{encoding: "gzip", body: []byte(text)}, ""},
		"an unknown compression is no hint":          {sent{query: "compression=lzma", body: []byte(text)}, ""},
		"deflate by header":                          {sent{encoding: "deflate", body: deflated([]byte(text))}, "deflate"},
		"brotli by header":                           {sent{encoding: "br", body: brotlied([]byte(text))}, "br"},
		"zstd by header":                             {sent{encoding: "zstd", body: zstded([]byte(text))}, "zstd"},
		"form with base64":                           {sent{kind: form, body: []byte("data=" + url.QueryEscape(b64))}, "base64"},
		"form with base64 whose plus became a space": {sent{kind: form, body: []byte("data=" + b64)}, "base64"},
		"form with base64 and a charset":             {sent{kind: form + "; charset=UTF-8", body: []byte("ip=1&data=" + b64)}, "base64"},
		"form with base64 without padding":           {sent{kind: form, body: []byte("data=" + unpadded)}, "base64"},
		"form with plain JSON":                       {sent{kind: form, body: []byte("data=" + url.QueryEscape(text))}, ""},
		"form with gzip in base64":                   {sent{kind: form, body: []byte("compression=gzip-js&data=" + url.QueryEscape(base64.StdEncoding.EncodeToString(zip)))}, "gzip"},
		"form without its content type":              {sent{kind: plain, body: []byte("data=" + url.QueryEscape(b64))}, "base64"},
		"base64 as the whole body":                   {sent{kind: plain, body: []byte(b64)}, "base64"},
		"base64 for URLs":                            {sent{kind: plain, body: []byte(base64.RawURLEncoding.EncodeToString([]byte(text)))}, "base64"},
		"base64 in lines":                            {sent{body: []byte(b64[:20] + "\r\n" + b64[20:] + "\n")}, "base64"},
		"base64 twice":                               {sent{body: []byte(base64.StdEncoding.EncodeToString([]byte(b64)))}, "base64"},
		"gzip around base64":                         {sent{body: gz([]byte(b64))}, "gzip"},
		"GET with data":                              {sent{method: "GET", query: "data=" + url.QueryEscape(b64)}, "base64"},
		"GET with plain data":                        {sent{method: "GET", query: "data=" + url.QueryEscape(text)}, ""},
		"data in the query wins over the body":       {sent{query: "data=" + url.QueryEscape(text), body: []byte(`{"other":1}`)}, ""},
		"multipart form":                             {sent{kind: "multipart/form-data; boundary=XX", body: []byte("--XX\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n" + b64 + "\r\n--XX--\r\n")}, "base64"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := request(tc.sent)
			defer release(c)
			p, err := c.decode(limits)
			if err != nil {
				t.Fatalf("Decode: %v", err)
			}
			if got := strings.TrimSpace(string(p.JSON)); got != text {
				t.Errorf("JSON = %s, want %s", got, text)
			}
			if p.Compression != tc.compression {
				t.Errorf("Compression = %q, want %q", p.Compression, tc.compression)
			}
		})
	}
}

func TestDecodeSanitizesJSON(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"NaN and both infinities become null":               {`{"a":NaN,"b":[Infinity,-Infinity, NaN ]}`, `{"a":null,"b":[null,null, null ]}`},
		"NaN in a text stays":                               {`{"a":"NaN","b":NaN}`, `{"a":"NaN","b":null}`},
		"CESU-8 becomes UTF-8":                              {"{\"a\":\"\xed\xa0\xbd\xed\xb2\xbb\"}", `{"a":"💻"}`},
		"half a pair in CESU-8 becomes visible":             {"{\"a\":\"\xed\xa0\xbdx\"}", `{"a":"\\ud83dx"}`},
		"the other half alone becomes visible":              {"{\"a\":\"\xed\xb2\xbb\"}", `{"a":"\\udcbb"}`},
		"half a pair as an escape becomes visible":          {`{"a":"\ud83d\u0041 \uDCBB"}`, `{"a":"\\ud83d\u0041 \\uDCBB"}`},
		"two first halves in a row":                         {`{"a":"\ud83d\ud83d\udcbb"}`, `{"a":"\\ud83d\ud83d\udcbb"}`},
		"a whole pair as an escape stays":                   {`{"a":"\ud83d\udcbb"}`, `{"a":"\ud83d\udcbb"}`},
		"a byte that is no UTF-8 becomes U+FFFD":            {"{\"a\":\"x\xff\xc3(\"}", "{\"a\":\"x\ufffd\ufffd(\"}"},
		"a cut off character becomes U+FFFD":                {"{\"a\":\"\xf0\x9f\x92\"}", "{\"a\":\"\ufffd\ufffd\ufffd\"}"},
		"NUL becomes U+FFFD, escaped or not":                {"{\"a\":\"x\\u0000y\x00\"}", `{"a":"x\ufffdy\ufffd"}`},
		"a raw line feed in a text becomes an escape":       {"{\"a\":\"x\ny\tz\"}", `{"a":"x\u000ay\u0009z"}`},
		"an escaped backslash before u is not an escape":    {`{"a":"\\u0000 \\ud83d"}`, `{"a":"\\u0000 \\ud83d"}`},
		"names are sanitized like values":                   {"{\"\xff\":NaN}", "{\"\ufffd\":null}"},
		"the real replacement character is not damage":      {"{\"a\":\"\ufffd\"}", "{\"a\":\"\ufffd\"}"},
		"numbers keep their digits":                         {`{"a":123456789012345678901234567890.10e+5}`, `{"a":123456789012345678901234567890.10e+5}`},
		"duplicate names are left for the reader to settle": {`{"a":1,"a":2}`, `{"a":1,"a":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := request(sent{body: []byte(tc.in)})
			defer release(c)
			p, err := c.decode(limits)
			if err != nil {
				t.Fatalf("Decode(%q): %v", tc.in, err)
			}
			if string(p.JSON) != tc.want {
				t.Errorf("Decode(%q) = %q, want %q", tc.in, p.JSON, tc.want)
			}
		})
	}
}

func TestDecodeRejects(t *testing.T) {
	t.Parallel()
	bomb := gz(bytes.Repeat([]byte(" "), 2<<20))
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	for name, tc := range map[string]struct {
		sent
		kind fault.Kind
		code string
	}{
		"nothing at all":                        {sent{}, fault.Malformed, "no_data"},
		"GET without data":                      {sent{method: "GET", query: "v=3"}, fault.Malformed, "no_data"},
		"a form without data":                   {sent{kind: form, body: []byte("ip=1&ver=2")}, fault.Malformed, "no_data"},
		"a sentence":                            {sent{body: []byte("hello world")}, fault.Malformed, "invalid_payload"},
		"the gzip of undefined":                 {sent{body: gz([]byte("undefined"))}, fault.Malformed, "invalid_payload"},
		"JSON cut short":                        {sent{body: []byte(`{"event":"paid`)}, fault.Malformed, "invalid_payload"},
		"JSON with more behind":                 {sent{body: []byte(`{} {}`)}, fault.Malformed, "invalid_payload"},
		"a number with two signs":               {sent{body: []byte(`{"a":1-2}`)}, fault.Malformed, "invalid_payload"},
		"a number that starts with zero":        {sent{body: []byte(`[01]`)}, fault.Malformed, "invalid_payload"},
		"a name without quotes":                 {sent{body: []byte(`{a:1}`)}, fault.Malformed, "invalid_payload"},
		"a comma too many":                      {sent{body: []byte(`[1,]`)}, fault.Malformed, "invalid_payload"},
		"an unknown escape":                     {sent{body: []byte(`["\x41"]`)}, fault.Malformed, "invalid_payload"},
		"too deep":                              {sent{body: []byte(deep)}, fault.Malformed, "invalid_payload"},
		"gzip cut short":                        {sent{body: gz([]byte(`{"a":1}`))[:15]}, fault.Malformed, "invalid_payload"},
		"gzip by parameter that is none":        {sent{query: "compression=gzip", body: []byte("\x01\x02\x03\x04")}, fault.Malformed, "invalid_payload"},
		"LZ-string that is none":                {sent{query: "compression=lz64", body: []byte("%%%%")}, fault.Malformed, "invalid_payload"},
		"deflate that is none":                  {sent{encoding: "deflate", body: []byte("xxxx")}, fault.Malformed, "invalid_payload"},
		"a gzip bomb":                           {sent{body: bomb}, fault.TooLarge, "request_too_large"},
		"a gzip bomb in a form":                 {sent{kind: form, body: []byte("data=" + url.QueryEscape(base64.StdEncoding.EncodeToString(bomb)))}, fault.TooLarge, "request_too_large"},
		"a brotli bomb":                         {sent{encoding: "br", body: brotlied(bytes.Repeat([]byte(" "), 2<<20))}, fault.TooLarge, "request_too_large"},
		"a zstd bomb":                           {sent{encoding: "zstd", body: zstded(bytes.Repeat([]byte(" "), 2<<20))}, fault.TooLarge, "request_too_large"},
		"a text that grows too much by escapes": {sent{body: []byte(`["` + strings.Repeat("\x01", 300_000) + `"]`)}, fault.TooLarge, "request_too_large"},
		"a deflate bomb":                        {sent{encoding: "deflate", body: deflated(bytes.Repeat([]byte(" "), 2<<20))}, fault.TooLarge, "request_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := request(tc.sent)
			defer release(c)
			_, err := c.decode(limits)
			f := fault.From(err)
			if f == nil || f.Kind != tc.kind || f.Code != tc.code || f.Detail == "" {
				t.Errorf("Decode: %v, want kind %d with code %s", err, tc.kind, tc.code)
			}
		})
	}
}

func TestDecodeUsesTheErrorCodeOfTheCaller(t *testing.T) {
	t.Parallel()
	c := request(sent{body: []byte("{")})
	defer release(c)
	l := limits
	l.Malformed = "malformed_data"
	_, err := c.decode(l)
	if f := fault.From(err); f == nil || f.Code != "malformed_data" || !strings.HasPrefix(f.Detail, "Malformed request data: ") {
		t.Errorf("Decode: %v", err)
	}
}

func TestDecodeLeavesUncheckedJSONAlone(t *testing.T) {
	t.Parallel()
	c := request(sent{body: gz([]byte(`{"a":NaN`))})
	defer release(c)
	l := limits
	l.Unchecked = true
	if p, err := c.decode(l); err != nil || string(p.JSON) != `{"a":NaN` {
		t.Errorf("Decode = %v, %v", p, err)
	}
}

func TestDecodeReadsSentAtAndBeacon(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1795229085410).UTC()
	for name, tc := range map[string]struct {
		sent
		at     time.Time
		beacon bool
	}{
		"milliseconds in _":              {sent{query: "_=1795229085410"}, at, false},
		"milliseconds in sent_at":        {sent{query: "sent_at=1795229085410"}, at, false},
		"seconds have at most 11 digits": {sent{query: "_=1795229085"}, at.Truncate(time.Second), false},
		"a fraction is cut off":          {sent{query: "_=1795229085410.7"}, at, false},
		"a cache buster is no time":      {sent{query: "_=8f3a"}, time.Time{}, false},
		"a small number is no time":      {sent{query: "_=12345"}, time.Time{}, false},
		"a huge number is no time":       {sent{query: "_=99999999999999999999"}, time.Time{}, false},
		"before 2020 is no time":         {sent{query: "_=1262304000000"}, time.Time{}, false},
		"RFC 3339 in sent_at":            {sent{query: "sent_at=2026-11-21T03:04:05.5%2B01:00"}, time.Date(2026, 11, 21, 2, 4, 5, 5e8, time.UTC), false},
		"a form may carry it":            {sent{kind: form, body: []byte("sent_at=1795229085410&data=%7B%7D")}, at, false},
		"beacon=1":                       {sent{query: "beacon=1"}, time.Time{}, true},
		"beacon=0 is no beacon":          {sent{query: "beacon=0"}, time.Time{}, false},
		"nothing beside the data":        {sent{}, time.Time{}, false},
		"an unreadable _ is skipped":     {sent{query: "_=x&sent_at=1795229085410"}, at, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tc.sent
			if s.body == nil {
				s.body = []byte("{}")
			}
			c := request(s)
			defer release(c)
			p, err := c.decode(limits)
			if err != nil {
				t.Fatal(err)
			}
			if !p.SentAt.Equal(tc.at) || p.Beacon != tc.beacon {
				t.Errorf("SentAt = %v, Beacon = %v; want %v, %v", p.SentAt, p.Beacon, tc.at, tc.beacon)
			}
		})
	}
}

func TestPayloadValues(t *testing.T) {
	t.Parallel()
	c := request(sent{query: "token=1&ip=0", kind: form, body: []byte("data=%7B%7D&token=2&token=3")})
	defer release(c)
	p, err := c.decode(limits)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{p.Query("token"), p.Form("token"), p.Value("token"), p.Value("ip"), p.Value("none")}
	if want := []string{"1", "2", "2", "0", ""}; !reflect.DeepEqual(got, want) {
		t.Errorf("values = %q, want %q", got, want)
	}
}

// recording is one line of what real clients sent.
type recording struct {
	N       int
	Method  string
	Path    string
	Query   string
	Headers map[string]string
	Body    []byte `json:"body_b64"`
	Decoded json.RawMessage
}

func recordings(tb testing.TB) map[string][]recording {
	tb.Helper()
	files, err := filepath.Glob("testdata/wire/*.jsonl")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no recordings: %v", err)
	}
	out := map[string][]recording{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var r recording
			if err := json.Unmarshal(line, &r); err != nil {
				tb.Fatalf("%s: %v", file, err)
			}
			name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
			out[name] = append(out[name], r)
		}
	}
	return out
}

func (r recording) sent() sent {
	return sent{method: r.Method, query: r.Query, kind: r.Headers["content-type"], encoding: r.Headers["content-encoding"], body: r.Body}
}

// recorder is the address of the recorder itself, which the expectations of
// the recordings call HOST.
var recorder = regexp.MustCompile(`("\$lib_custom_api_host":"http://)127\.0\.0\.1:\d+"`)

func TestDecodeReadsRecordedRequests(t *testing.T) {
	t.Parallel()
	for client, rs := range recordings(t) {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			for _, r := range rs {
				if len(r.Body) == 0 {
					continue
				}
				want := r.Decoded
				if want == nil {
					want = r.Body
				}
				c := request(r.sent())
				p, err := c.decode(limits)
				if err != nil {
					t.Errorf("request %d: %v", r.N, err)
				} else if got := recorder.ReplaceAll(p.JSON, []byte(`${1}HOST"`)); !sameJSON(got, recorder.ReplaceAll(want, []byte(`${1}HOST"`))) {
					t.Errorf("request %d: %.300s\nwant %.300s", r.N, got, want)
				}
				release(c)
			}
		})
	}
}

func TestLZStringVectors(t *testing.T) {
	t.Parallel()
	var vectors []struct {
		Name, LZ string
		Want     json.RawMessage
	}
	text, err := os.ReadFile("testdata/lzstring.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors) == 0 {
		t.Fatal(err)
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			for _, s := range []sent{
				{query: "compression=lz64", kind: plain, body: []byte(v.LZ)},
				{query: "compression=LZ-String", body: []byte(strings.TrimRight(v.LZ, "="))},
				{kind: form, body: []byte("compression=lz64&data=" + url.QueryEscape(v.LZ))},
				{kind: form, body: []byte("data=" + v.LZ + "&compression=lz64")},
			} {
				c := request(s)
				p, err := c.decode(limits)
				if err != nil {
					t.Errorf("%s %s: %v", s.query, s.kind, err)
				} else if !sameJSON(p.JSON, v.Want) || p.Compression != "lz64" {
					t.Errorf("%s %s: %.300s\nwant %.300s", s.query, s.kind, p.JSON, v.Want)
				}
				release(c)
			}
		})
	}
}

func TestLZStringStopsAtTheLimit(t *testing.T) {
	t.Parallel()
	// Code 3 is the first unit; every code equal to the size of the dictionary
	// then repeats the last text and one unit more, so n codes make n²/2 units.
	var bits []byte
	put := func(v, n int) {
		for range n {
			bits = append(bits, byte(v&1))
			v >>= 1
		}
	}
	put(0, 2)
	put('[', 8)
	size, room, width := 4, 4, 3
	for range 3000 {
		put(size, width)
		size++
		if room--; room == 0 {
			room, width = 1<<width, width+1
		}
	}
	put(2, width)
	for len(bits)%6 != 0 {
		bits = append(bits, 0)
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var text []byte
	for i := 0; i < len(bits); i += 6 {
		v := 0
		for _, b := range bits[i : i+6] {
			v = v<<1 | int(b)
		}
		text = append(text, alphabet[v])
	}
	c := request(sent{query: "compression=lz64", body: text})
	defer release(c)
	if _, err := c.decode(limits); !fault.Is(err, fault.TooLarge) {
		t.Errorf("%d bytes that stand for four million: %v, want TooLarge", len(text), err)
	}
}

// sameJSON compares values; numbers by their digits.
func sameJSON(a, b []byte) bool {
	read := func(text []byte) (v any, err error) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		err = d.Decode(&v)
		return v, err
	}
	x, errX := read(a)
	y, errY := read(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}
