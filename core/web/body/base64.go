package body

// base64Values maps the characters of the alphabets that clients use: the standard
// one, the one for URLs, and the space that a plus sign becomes in a form. Padding
// and line ends are skipped.
var base64Values = func() (t [256]uint8) {
	for i := range t {
		t[i] = base64Bad
	}
	for i, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" {
		t[c] = uint8(i)
	}
	for _, c := range "+- " {
		t[c] = 62
	}
	for _, c := range "/_" {
		t[c] = 63
	}
	for _, c := range "=\r\n\t" {
		t[c] = base64Skip
	}
	return t
}()

const (
	base64Skip = 64
	base64Bad  = 65
)

// looksBase64 reports whether the first 128 bytes could all be base64.
func looksBase64(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	for _, c := range b[:min(len(b), 128)] {
		if base64Values[c] == base64Bad {
			return false
		}
	}
	return true
}

// base64Decoder decodes base64 piece by piece. It accepts missing padding.
type base64Decoder struct {
	acc  uint32
	have uint // bits of acc that are not used yet
}

// append appends the decoded b to dst and returns false if b has a byte outside
// of the alphabet.
func (d *base64Decoder) append(dst, b []byte) ([]byte, bool) {
	acc, have := d.acc, d.have
	for _, c := range b {
		v := base64Values[c]
		if v >= base64Skip {
			if v == base64Bad {
				return dst, false
			}
			continue
		}
		acc = acc<<6 | uint32(v)
		if have += 6; have >= 8 {
			have -= 8
			dst = append(dst, byte(acc>>have))
		}
	}
	d.acc, d.have = acc, have
	return dst, true
}
