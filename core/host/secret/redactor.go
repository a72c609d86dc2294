package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
)

// Redactor replaces secrets in text that leaves the host. Its zero value redacts
// nothing. Its methods are safe for concurrent use.
type Redactor struct {
	mu       sync.Mutex
	values   []string
	replacer atomic.Pointer[strings.Replacer]
}

// Add redacts value from now on: as it is, quoted in JSON, escaped in a URL, in base64, and
// each long line of it. Values shorter than four bytes are ignored: their
// redaction would hide ordinary words and protect nothing.
func (r *Redactor) Add(value string) {
	if len(value) < 4 {
		return
	}
	values := append(forms(value), linesOf(value)...)
	r.addValues(values)
}

// forms returns the texts in which a value may appear: as it is, within a JSON string or a
// URL, and in base64, also as a part of a longer encoded text such as user:password.
func forms(value string) []string {
	out := []string{value, url.QueryEscape(value), url.PathEscape(value), url.UserPassword("", value).String()[1:]}
	if quoted, err := json.Marshal(value); err == nil {
		out = append(out, string(quoted[1:len(quoted)-1]))
	}
	var plain bytes.Buffer // quotes without the escapes of HTML
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) == nil {
		out = append(out, strings.Trim(plain.String(), "\"\n"))
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		out = append(out, encoding.EncodeToString([]byte(value)))
		out = append(out, encodedWithin(encoding, value)...)
	}
	return slices.DeleteFunc(out, func(s string) bool { return len(s) < 4 })
}

// minEncoded is the shortest part of a base64 text that is redacted.
const minEncoded = 8

// encodedWithin returns the characters that a value has in the base64 text of a longer
// text, for each of the three places at which it may begin. The characters at its ends
// depend on its neighbours and are left out.
func encodedWithin(encoding *base64.Encoding, value string) []string {
	var out []string
	for before := range 3 {
		bits := 8 * (before + len(value))
		text := encoding.EncodeToString(append(make([]byte, before), value...))
		if text = text[(8*before+5)/6 : bits/6]; len(text) >= minEncoded {
			out = append(out, text)
		}
	}
	return out
}

// minLine is the shortest line of a longer value that is redacted alone: the log is read
// line by line.
const minLine = 12

// linesOf returns the lines of a value of several lines, without the frame of a PEM block.
func linesOf(value string) []string {
	if !strings.Contains(value, "\n") {
		return nil
	}
	var out []string
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) >= minLine && !strings.HasPrefix(line, "-----") {
			out = append(out, line)
		}
	}
	return out
}

// AddAll redacts the values of other, too.
func (r *Redactor) AddAll(other *Redactor) {
	other.mu.Lock()
	values := slices.Clone(other.values)
	other.mu.Unlock()
	if len(values) > 0 {
		r.addValues(values)
	}
}

func (r *Redactor) addValues(values []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range values {
		if !slices.Contains(r.values, v) {
			r.values = append(r.values, v)
		}
	}
	// Longest first, so that a value inside another one leaves no rest.
	sort.Slice(r.values, func(i, j int) bool { return len(r.values[i]) > len(r.values[j]) })
	pairs := make([]string, 0, 2*len(r.values))
	for _, v := range r.values {
		pairs = append(pairs, v, "[secret]")
	}
	r.replacer.Store(strings.NewReplacer(pairs...))
}

// Empty reports whether Redact returns every text unchanged.
func (r *Redactor) Empty() bool { return r == nil || r.replacer.Load() == nil }

// String hides the values from formatted output.
func (r *Redactor) String() string { return "[secrets]" }

// Redact returns text with each value replaced by [secret]. A nil Redactor returns
// text unchanged.
func (r *Redactor) Redact(text string) string {
	if r == nil {
		return text
	}
	if replacer := r.replacer.Load(); replacer != nil {
		return replacer.Replace(text)
	}
	return text
}
