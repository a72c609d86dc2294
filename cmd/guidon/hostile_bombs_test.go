package main_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// bomb is a request that inflates or parses to far more than its size.
type bomb struct {
	name  string
	query string
	kind  string // the content type
	gzip  bool   // as the header names it
	body  []byte
	auth  bool // with the personal key of the owner
}

const (
	formType      = "application/x-www-form-urlencoded"
	multipartKind = "multipart/form-data; boundary=X"
)

// bombs returns the hostile requests. project and personal are valid keys: a
// client of the server may be hostile, too.
func bombs(project, personal string) []bomb {
	zeros := packed(make([]byte, 16<<20))
	gigabyte := bytes.Repeat(zeros, 64)
	commented := append([]byte("\x1f\x8b\x08\x10\x00\x00\x00\x00\x00\xffpersonal_api_key\x00"), gigabyte[10:]...)
	tree := []byte(`{"a":[` + strings.Repeat("{},", 6<<20) + `0]}`)
	text := []byte(`{"token":"phc_none","distinct_id":"` + strings.Repeat("x", 20<<20) + `"}`)
	items := `[` + strings.Repeat(`{},`, 6<<20) + `{}]}`
	part := packed([]byte("--X\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n" + strings.Repeat("x", 24<<20) + "\r\n--X--\r\n"))
	inForm := func(b []byte) []byte {
		return []byte("data=" + url.QueryEscape(base64.StdEncoding.EncodeToString(b)))
	}
	list := []bomb{
		{name: "gzip of a gigabyte", body: gigabyte},
		{name: "gzip of a gigabyte by header", gzip: true, body: gigabyte},
		{name: "gzip of a gigabyte as multipart", kind: multipartKind, gzip: true, body: gigabyte},
		{name: "gzip with a key in its comment as multipart", kind: multipartKind, gzip: true, body: commented},
		{name: "gzip of a large part", kind: multipartKind, gzip: true, body: part},
		{name: "gzip in base64", body: []byte(base64.StdEncoding.EncodeToString(gigabyte))},
		{name: "gzip in base64 in a form", kind: formType, body: inForm(gigabyte)},
		{name: "gzip of gzip", body: packed(gigabyte)},
		{name: "a tree in gzip", body: packed(tree)},
		{name: "a tree", body: tree},
		{name: "a tree with a key", body: append([]byte(`{"token":"`+project+`","distinct_id":"u","person_properties":`), append(slices.Clone(tree), '}')...)},
		{name: "text in gzip", body: packed(text)},
		{name: "text in gzip in base64", body: []byte(base64.StdEncoding.EncodeToString(packed(text)))},
		{name: "LZ-string", query: "?compression=lz64", body: lzBomb(8000)},
		{name: "LZ-string in a form", query: "?compression=lz64", kind: formType, body: append([]byte("data="), url.QueryEscape(string(lzBomb(8000)))...)},
		{name: "a form of millions of fields", kind: formType, body: []byte("data=x" + strings.Repeat("&a", 6<<20))},
		{name: "brackets", body: packed([]byte(strings.Repeat("[", 20<<20)))},
		{name: "a long name", body: packed([]byte(`{"` + strings.Repeat("k", 20<<20) + `":1}`))},
		{name: "many events", body: packed([]byte(`{"api_key":"phc_none","batch":` + items))},
		{name: "many events with a key", body: packed([]byte(`{"api_key":"` + project + `","batch":` + items))},
	}
	for _, b := range slices.Clone(list) {
		if b.gzip || b.kind == multipartKind || b.name == "a tree" || b.kind == formType {
			b.name, b.auth = b.name+" with a personal key", true
			list = append(list, b)
		}
	}
	return list
}

func packed(b []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

// lzBomb is LZ-string of one growing entry: each code is the entry that is being
// added, so that n codes are about n*n/2 characters.
func lzBomb(codes int) []byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var out []byte
	acc, have := 0, 0
	put := func(v, n int) {
		for range n {
			acc, v = acc<<1|v&1, v>>1
			if have++; have == 6 {
				out, acc, have = append(out, alphabet[acc]), 0, 0
			}
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
	put(0, 6)
	return out
}
