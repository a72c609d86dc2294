package body_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/body"
	"github.com/guidonhq/guidon/core/web/budget"
)

// lzBomb is LZ-string of one growing entry: after the first unit each code is the
// entry that is just being added.
func lzBomb(codes int) []byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var bits []byte
	put := func(v, n int) {
		for range n {
			bits = append(bits, byte(v&1))
			v >>= 1
		}
	}
	put(0, 2)
	put('[', 8)
	size, untilWider, width := 4, 4, 3
	for range codes {
		put(size, width)
		size++
		if untilWider--; untilWider == 0 {
			untilWider = 1 << width
			width++
		}
	}
	for len(bits)%6 != 0 {
		bits = append(bits, 0)
	}
	out := make([]byte, 0, len(bits)/6)
	for i := 0; i < len(bits); i += 6 {
		v := 0
		for _, b := range bits[i : i+6] {
			v = v<<1 | int(b)
		}
		out = append(out, alphabet[v])
	}
	return out
}

// Each bomb inflates far past the budget. The decoder takes what it needs in
// steps, fails at the limit of a request or when the budget is used up, and gives
// everything back.
func TestBombsStayWithinTheBudget(t *testing.T) {
	t.Parallel()
	zeros := gz(make([]byte, 20<<20))
	commented := append(append([]byte{0x1f, 0x8b, 8, 16}, zeros[4:10]...), append([]byte("personal_api_key\x00"), zeros[10:]...)...)
	part := gz([]byte("--X\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n" + strings.Repeat("x", 20<<20) + "\r\n--X--\r\n"))
	const multipart = "multipart/form-data; boundary=X"
	cases := map[string]sent{
		"gzip of zeros":                      {body: zeros},
		"gzip of zeros in base64":            {body: []byte(base64.StdEncoding.EncodeToString(zeros))},
		"gzip in base64 in a form":           {kind: form, body: append([]byte("data="), base64.URLEncoding.EncodeToString(zeros)...)},
		"gzip of gzip":                       {body: gz(gz(make([]byte, 20<<20)))},
		"gzip of zeros as multipart":         {kind: multipart, encoding: "gzip", body: zeros},
		"gzip with a comment as multipart":   {kind: multipart, encoding: "gzip", body: commented},
		"gzip of a part":                     {kind: multipart, encoding: "gzip", body: part},
		"deflate":                            {encoding: "deflate", body: deflated(make([]byte, 20<<20))},
		"brotli":                             {encoding: "br", body: brotlied(make([]byte, 20<<20))},
		"zstd":                               {encoding: "zstd", body: zstded(make([]byte, 20<<20))},
		"LZ-string of a growing entry":       {query: "compression=lz64", body: lzBomb(8000)},
		"a form of LZ-string":                {query: "compression=lz64", kind: form, body: append([]byte("data="), lzBomb(8000)...)},
		"a form of a million fields":         {kind: form, body: []byte("data=x" + strings.Repeat("&a", 1<<20))},
		"a multipart form of many parts":     {kind: multipart, body: []byte(strings.Repeat("--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n", 5000))},
		"a multipart form with large header": {kind: multipart, body: []byte("--X\r\nA: " + strings.Repeat("x", 1<<20) + "\r\n\r\n\r\n--X--\r\n")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := request(tc)
			defer release(c)
			for _, used := range []int{0, 6 << 20} { // an idle server and one that is saturated
				b := budget.New(8 << 20)
				var other, own budget.Account
				other.Open(b)
				own.Open(b)
				if err := other.Take(used); err != nil {
					t.Fatal(err)
				}
				_, err := c.decode(body.Limits{InflatedBytes: 16 << 20, Depth: 64, Memory: &own})
				if k := fault.KindOf(err); k != fault.TooLarge && k != fault.Unavailable && k != fault.Malformed {
					t.Errorf("with %d bytes in use: %v", used, err)
				}
				c.decoder.Release()
				if own.Held() != 0 {
					t.Errorf("%d bytes are still held", own.Held())
				}
			}
		})
	}
}

// Memory bounds one request as its own limit does.
func TestADecoderTakesWhatItAllocates(t *testing.T) {
	t.Parallel()
	text := []byte(`{"a":"` + strings.Repeat("x", 3<<20) + `"}`)
	c := request(sent{body: gz(text)})
	defer release(c)
	b := budget.New(100 << 20)
	var own budget.Account
	own.Open(b)
	p, err := c.decode(body.Limits{InflatedBytes: 16 << 20, Depth: 64, Memory: &own})
	if err != nil || !bytes.Equal(p.JSON, text) {
		t.Fatal(err)
	}
	if held := own.Held(); held < len(text) || held > 3*len(text) {
		t.Errorf("%d bytes are held for %d", held, len(text))
	}
	c.decoder.Release()
	if b.Used() != 0 {
		t.Errorf("%d bytes are left", b.Used())
	}
}

func TestCheckValues(t *testing.T) {
	t.Parallel()
	l := body.Limits{Values: 1000}
	for text, ok := range map[string]bool{
		"[" + strings.Repeat("{},", 490) + "{}]":              true,
		"[" + strings.Repeat("{},", 1000) + "{}]":             false,
		`["` + strings.Repeat("a,{[", 1000) + `"]`:            true,
		`["` + strings.Repeat(`\",`, 1000) + `"]`:             true,
		strings.Repeat("[", 1001) + strings.Repeat("]", 1001): false,
	} {
		if err := l.CheckValues([]byte(text)); (err == nil) != ok {
			t.Errorf("%.20s...: %v", text, err)
		}
	}
}

// Fields of an old form library and of ours are the same.
func FuzzFields(f *testing.F) {
	f.Add([]byte("data=a%20b&data=c&_=1&%64ata=x&api_key=a+b&=&token"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := request(sent{kind: form, body: append([]byte("data=%7B%7D&"), raw...)})
		defer release(c)
		p, err := c.decode(limits)
		if err != nil {
			return
		}
		args := c.request.PostArgs()
		for _, name := range []string{"token", "api_key", "project_id", "compression"} {
			if got, want := p.Form(name), string(args.Peek(name)); got != want {
				t.Errorf("%s = %q, want %q", name, got, want)
			}
		}
	})
}

// FuzzParts finds in any body no more than it has.
func FuzzParts(f *testing.F) {
	f.Add([]byte("X"), []byte("--X\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n{}\r\n--X--\r\n"))
	f.Add([]byte("X"), []byte("pre\r\n--X \r\nContent-Disposition: form-data; name=a; filename=b\r\n\r\n\r\n--X--"))
	f.Fuzz(func(t *testing.T, boundary, raw []byte) {
		total := 0
		_ = body.EachPart(raw, boundary, func(p body.Part) error {
			total += len(p.Value)
			return nil
		})
		if total > len(raw) {
			t.Errorf("%d bytes of values in %d", total, len(raw))
		}
	})
}
