package apikey

import "bytes"

// Removed and RemovedSecret stand in stored JSON for a personal key and for a
// secret key of a project.
const (
	Removed       = "(personal key)"
	RemovedSecret = "(secret key)"
)

// minSecret is the number of characters after a prefix from which a text counts
// as a key wherever it stands. Keys have 43; shorter texts are keys only in a
// field for keys.
const minSecret = 32

// keyFields are the fields of events and their properties that hold keys.
var keyFields = map[string]bool{
	"token": true, "api_key": true, "$token": true, "personal_api_key": true, "secret_api_key": true, "secret_key": true, "project_api_key": true,
}

var secretPrefix = []byte(SecretPrefix)

// MayHoldSecret reports whether data contains the prefix of a personal key or a
// secret key. It does not allocate.
func MayHoldSecret(data []byte) bool { return secretAt(data, 0) >= 0 }

// secretAt returns the position of the first prefix of a personal key or a secret
// key at from or after it, -1 for none. It looks for the underscore, the rarest
// byte that both prefixes have in JSON.
func secretAt(data []byte, from int) int {
	for at := from + 3; at < len(data); at++ {
		i := bytes.IndexByte(data[at:], '_')
		if i < 0 {
			return -1
		}
		if at += i; data[at-2] == 'h' && data[at-3] == 'p' && (data[at-1] == 'x' || data[at-1] == 's') {
			return at - 3
		}
	}
	return -1
}

// RemoveSecrets returns valid JSON in which Removed replaces every personal key
// and RemovedSecret every secret key: any key of full length, also inside of longer texts such as URLs,
// and any value with the prefix in a field for keys (token, api_key,
// personal_api_key and the like). token, if not empty, is removed at any length.
// The result shares no memory with data unless nothing was removed. Other bytes
// keep their place, except that escaped characters of keys are written plainly.
func RemoveSecrets(data []byte, token string) []byte {
	plain := unescapeKeys(data)
	out := make([]byte, 0, len(plain))
	done := 0
	for at := secretAt(plain, 0); at >= 0; at = secretAt(plain, at) {
		end := at + 4
		for end < len(plain) && isKeyByte(plain[end]) {
			end++
		}
		if key := plain[at:end]; len(key) < 4+minSecret && (token == "" || string(key) != token) && !inKeyField(plain[:at]) {
			at = end
		} else {
			out = append(append(out, plain[done:at]...), replacement(key)...)
			done, at = end, end
		}
		if at >= len(plain) {
			break
		}
	}
	if done == 0 {
		return data
	}
	return append(out, plain[done:]...)
}

func replacement(key []byte) string {
	if bytes.HasPrefix(key, secretPrefix) {
		return RemovedSecret
	}
	return Removed
}

func isKeyByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' || b == '_' || b == '-'
}

// inKeyField reports whether a string that begins at the end of head is the value
// of a field for keys.
func inKeyField(head []byte) bool {
	head = bytes.TrimRight(head, " \t\r\n") // white space before the key counts as its part
	head, ok := bytes.CutSuffix(head, []byte(`"`))
	if !ok {
		return false
	}
	if head, ok = bytes.CutSuffix(bytes.TrimRight(head, " \t\r\n"), []byte(":")); !ok {
		return false
	}
	if head, ok = bytes.CutSuffix(bytes.TrimRight(head, " \t\r\n"), []byte(`"`)); !ok {
		return false
	}
	return keyFields[string(head[bytes.LastIndexByte(head, '"')+1:])]
}

// unescapeKeys writes the characters of keys plainly that data has as \u escapes.
func unescapeKeys(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\u00`)) {
		return data
	}
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		if data[i] != '\\' || i+1 >= len(data) {
			out = append(out, data[i])
			i++
			continue
		}
		if b, ok := escapedASCII(data[i:]); ok && (isKeyByte(b) || b == '$') {
			out = append(out, b)
			i += 6
			continue
		}
		out = append(out, data[i], data[i+1])
		i += 2
	}
	return out
}

// escapedASCII decodes \u00XX at the start of data.
func escapedASCII(data []byte) (b byte, ok bool) {
	if len(data) < 6 || string(data[1:4]) != "u00" {
		return 0, false
	}
	high, ok1 := hexDigit(data[4])
	low, ok2 := hexDigit(data[5])
	return high<<4 | low, ok1 && ok2
}

func hexDigit(b byte) (byte, bool) {
	switch {
	case b >= '0' && b <= '9':
		return b - '0', true
	case b >= 'a' && b <= 'f':
		return b - 'a' + 10, true
	case b >= 'A' && b <= 'F':
		return b - 'A' + 10, true
	}
	return 0, false
}
