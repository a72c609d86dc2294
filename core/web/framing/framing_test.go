package framing_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/web/framing"
)

const common = "Host: flags.example.com\r\nUser-Agent: posthog-node/4.10.2\r\nAccept: */*\r\nContent-Type: application/json\r\nConnection: keep-alive\r\nAccept-Encoding: gzip, deflate, br\r\n"

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		header string
		http10 bool
		valid  bool
	}{
		"no header":                         {"", false, true},
		"no body":                           {common + "\r\n", false, true},
		"a length":                          {common + "Content-Length: 5\r\n\r\n", false, true},
		"chunks":                            {common + "Transfer-Encoding: chunked\r\n\r\n", false, true},
		"chunks in other letters":           {common + "transfer-encoding: \tChunked \r\n\r\n", false, true},
		"an empty value":                    {"X:\r\n\r\n", false, true},
		"a length and chunks":               {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", false, false},
		"chunks and a length":               {"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n", false, false},
		"two codings":                       {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", false, false},
		"a coding and identity":             {"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", false, false},
		"identity":                          {"Transfer-Encoding: identity\r\n\r\n", false, false},
		"a list of codings":                 {"Transfer-Encoding: gzip, chunked\r\n\r\n", false, false},
		"an obscured coding":                {"Transfer-Encoding: xchunked\r\n\r\n", false, false},
		"a vertical tab":                    {"Transfer-Encoding: \x0bchunked\r\n\r\n", false, false},
		"two different lengths":             {"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", false, false},
		"a length twice":                    {"Content-Length: 5\r\nContent-Length: 5\r\n\r\n", false, false},
		"a continued line":                  {"X: a\r\n b\r\n\r\n", false, false},
		"a continued line with a tab":       {"Transfer-Encoding:\r\n\tchunked\r\n\r\n", false, false},
		"a space before the colon":          {"Content-Length : 5\r\n\r\n", false, false},
		"a tab before the colon":            {"Transfer-Encoding\t: chunked\r\n\r\n", false, false},
		"no colon":                          {"Content-Length\r\n\r\n", false, false},
		"no name":                           {": 5\r\n\r\n", false, false},
		"a bare line feed":                  {"X: a\nContent-Length: 5\r\n\r\n", false, false},
		"a bare line feed at the end":       {"X: a\r\n\n", false, false},
		"a header without an end":           {"X: a", false, false},
		"chunks in HTTP/1.0":                {"Transfer-Encoding: chunked\r\n\r\n", true, false},
		"a length in HTTP/1.0":              {"Content-Length: 5\r\n\r\n", true, true},
		"another header of the same length": {"Content-Langua: 5\r\nContent-Length: 1\r\n\r\n", false, true},
	} {
		if problem := framing.Check([]byte(tc.header), !tc.http10); (problem == "") != tc.valid {
			t.Errorf("%s: problem %q, valid %v", name, problem, tc.valid)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	header := []byte(common + "Content-Length: 500\r\n\r\n")
	b.ReportAllocs()
	for b.Loop() {
		if framing.Check(header, true) != "" {
			b.Fatal("refused")
		}
	}
}
