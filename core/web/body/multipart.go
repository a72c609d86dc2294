package body

import (
	"bytes"
	"mime"

	"github.com/guidonhq/guidon/core/fault"
)

// maxPartHeader is the maximum size of the headers of a part.
const maxPartHeader = 4 << 10

// Part is a field of a multipart form. Its bytes are part of the body.
type Part struct {
	Name     []byte
	FileName string // empty for a field that is no file
	Value    []byte
}

var (
	lineEnd    = []byte("\r\n")
	headersEnd = []byte("\r\n\r\n")

	errMultipart = fault.New(fault.Malformed, "", "the multipart form is damaged")
)

// EachPart calls fn for the parts of a multipart form in order. Nothing is
// copied but names. It fails with Malformed for a damaged form, with TooLarge
// after MaxFields parts, and with the first error of fn.
func EachPart(raw, boundary []byte, fn func(p Part) error) error {
	if len(boundary) == 0 || len(boundary) > 70 {
		return errMultipart
	}
	delimiter := append([]byte("\r\n--"), boundary...)
	raw, ok := skipPreamble(raw, delimiter)
	for n := 0; ok; n++ {
		if bytes.HasPrefix(raw, []byte("--")) {
			return nil
		}
		if n == MaxFields {
			return errTooManyFields
		}
		var p Part
		if p, raw, ok = cutPart(raw, delimiter); ok {
			if err := fn(p); err != nil {
				return err
			}
		}
	}
	return errMultipart
}

// skipPreamble returns what follows the first delimiter.
func skipPreamble(raw, delimiter []byte) (rest []byte, ok bool) {
	if bytes.HasPrefix(raw, delimiter[len(lineEnd):]) {
		return raw[len(delimiter)-len(lineEnd):], true
	}
	_, rest, ok = bytes.Cut(raw, delimiter)
	return rest, ok
}

// cutPart reads the part behind a delimiter.
func cutPart(raw, delimiter []byte) (p Part, rest []byte, ok bool) {
	raw = bytes.TrimLeft(raw, " \t")
	if !bytes.HasPrefix(raw, lineEnd) {
		return p, nil, false
	}
	end := bytes.Index(raw[:min(len(raw), maxPartHeader)], headersEnd)
	if end < 0 {
		return p, nil, false
	}
	p.Name, p.FileName = partName(raw[:end])
	// The empty line is also the line end in front of the delimiter of an empty part.
	p.Value, rest, ok = bytes.Cut(raw[end+len(lineEnd):], delimiter)
	if len(p.Value) >= len(lineEnd) {
		p.Value = p.Value[len(lineEnd):]
	}
	return p, rest, ok
}

// partName returns the name of the field and of its file.
func partName(headers []byte) (name []byte, file string) {
	for line := range bytes.SplitSeq(headers, lineEnd) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		if !bytes.EqualFold(bytes.TrimSpace(key), []byte("content-disposition")) {
			continue
		}
		_, params, err := mime.ParseMediaType(string(bytes.TrimSpace(value)))
		if err == nil {
			return []byte(params["name"]), params["filename"]
		}
	}
	return nil, ""
}
