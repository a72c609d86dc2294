// Package framing finds requests whose length two HTTP implementations could
// read differently.
//
// A proxy and a server that disagree on where a request ends can be made to
// exchange the requests of different clients (request smuggling). RFC 9112
// demands that a server refuses such requests and closes the connection; the
// HTTP library of this server is more lenient. Check reads the header as it was
// sent, once, without allocations.
package framing

import (
	"bytes"
	"strings"
	"unsafe"
)

// Check returns why the header of a request is refused, "" for a valid one.
// header holds the lines after the request line, as they were sent, with the
// empty line at the end; http11 is false for HTTP/1.0. It refuses both
// Content-Length and Transfer-Encoding, either of them twice, a transfer coding
// other than chunked, continued lines (obs-fold), white space in front of a
// colon, lines without a colon, and line ends without a carriage return.
func Check(header []byte, http11 bool) string {
	lengths, codings := 0, 0
	for len(header) > 0 {
		end := bytes.IndexByte(header, '\n')
		if end < 1 || header[end-1] != '\r' {
			return "a header line does not end in CRLF"
		}
		line := header[:end-1]
		header = header[end+1:]
		if len(line) == 0 {
			break
		}
		colon := bytes.IndexByte(line, ':')
		switch {
		case line[0] == ' ' || line[0] == '\t':
			return "a header line is continued on the next line"
		case colon < 1:
			return "a header line has no name"
		case line[colon-1] == ' ' || line[colon-1] == '\t':
			return "white space follows the name of a header"
		}
		switch name := unsafe.String(&line[0], colon); {
		case colon == len("Content-Length") && strings.EqualFold(name, "Content-Length"):
			lengths++
		case colon == len("Transfer-Encoding") && strings.EqualFold(name, "Transfer-Encoding"):
			codings++
			if !bytes.EqualFold(bytes.Trim(line[colon+1:], " \t"), []byte("chunked")) {
				return "the transfer coding is not chunked"
			}
		}
	}
	switch {
	case lengths+codings > 1:
		return "the length of the body is given twice"
	case codings > 0 && !http11:
		return "Transfer-Encoding in HTTP/1.0"
	}
	return ""
}
