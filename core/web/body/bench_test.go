package body_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

const jsonType = "application/json"

// oneEvent is a capture request of usual size.
var oneEvent = []byte(`{"api_key":"phc_test","event":"order paid","distinct_id":"018b0c1e-1111-7aaa-8bbb-0123456789ab","timestamp":"2026-11-21T02:46:01.593Z","properties":{"$lib":"posthog-node","$lib_version":"4.10.2","amount":129.9,"currency":"EUR","items":3,"coupon":null,"first_order":false,"$groups":{"organization":"acme"},"$set":{"email":"ada@corp.test","plan":"pro"},"url":"https://shop.example/checkout?step=3","title":"Checkout · Shop"}}`)

func batchOf(n int) []byte {
	return []byte(`{"api_key":"phc_test","batch":[` + strings.TrimSuffix(strings.Repeat(string(oneEvent)+",", n), ",") + `]}`)
}

func BenchmarkDecode(b *testing.B) {
	batch := batchOf(100)
	emoji := bytes.ReplaceAll(oneEvent, []byte("Checkout"), []byte("日本語のタイトル 💻 Checkout"))
	for _, bc := range []struct {
		name string
		sent
		unchecked bool
	}{
		{name: "json/1", sent: sent{kind: jsonType, body: oneEvent}},
		{name: "json/1/unchecked", sent: sent{kind: jsonType, body: oneEvent}, unchecked: true},
		{name: "json/1/not-latin", sent: sent{kind: jsonType, body: emoji}},
		{name: "json/100", sent: sent{kind: jsonType, body: batch}},
		{name: "gzip/1", sent: sent{kind: plain, body: gz(oneEvent)}},
		{name: "gzip/100", sent: sent{kind: jsonType, encoding: "gzip", body: gz(batch)}},
		{name: "gzip/100/unchecked", sent: sent{kind: jsonType, encoding: "gzip", body: gz(batch)}, unchecked: true},
		{name: "form-base64/1", sent: sent{kind: form, body: formOf(oneEvent)}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			c := request(bc.sent)
			defer release(c)
			l := limits
			l.Unchecked = bc.unchecked
			raw := bytes.Clone(bc.body)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.decode(l); err != nil {
					b.Fatal(err)
				}
				c.decoder.Release() // as after every answer
			}
		})
	}
}

// formOf is how browsers of 2023 send an event.
func formOf(text []byte) []byte {
	var out fasthttp.Args
	out.SetBytesV("data", []byte(base64.StdEncoding.EncodeToString(text)))
	return out.QueryString()
}

func BenchmarkLZString(b *testing.B) {
	var vectors []struct{ Name, LZ string }
	text, err := os.ReadFile("testdata/lzstring.json")
	if err == nil {
		err = json.Unmarshal(text, &vectors)
	}
	if err != nil {
		b.Fatal(err)
	}
	for _, v := range vectors {
		if !strings.Contains(v.Name, "400 events") {
			continue
		}
		c := request(sent{query: "compression=lz64", body: []byte(v.LZ)})
		b.SetBytes(int64(len(v.LZ)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.decode(limits); err != nil {
				b.Fatal(err)
			}
			c.decoder.Release()
		}
	}
}
