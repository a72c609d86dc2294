package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/guidonhq/guidon/core/flags/document"
)

// multivariate checks the variants and stores their keys in c.
func (c *checker) multivariate(d *document.Object) error {
	c.variants = map[string]bool{}
	raw, ok := d.Given("multivariate")
	if !ok {
		return nil
	}
	m, err := document.Parse(raw)
	if err != nil {
		return bad(CodeInvalid, "multivariate must be an object or null, got %s", document.KindOf(raw))
	}
	raw, ok = m.Given("variants")
	if !ok {
		return nil
	}
	list, err := document.ParseList(raw)
	if err != nil {
		return bad(CodeInvalid, "multivariate.variants must be a list, got %s", document.KindOf(raw))
	}
	sum := new(big.Rat)
	for i, raw := range list {
		share, err := c.variant(raw, fmt.Sprintf("multivariate.variants[%d]", i))
		if err != nil {
			return err
		}
		sum.Add(sum, share)
	}
	if len(list) > 0 && sum.Cmp(big.NewRat(100, 1)) != 0 {
		return bad(CodeInvalid, "Invalid variant definitions: Variant rollout percentages must sum to 100, got %s", sum.FloatString(2))
	}
	return nil
}

func (c *checker) variant(raw json.RawMessage, path string) (*big.Rat, error) {
	v, err := document.Parse(raw)
	if err != nil {
		return nil, bad(CodeInvalid, "%s must be an object, got %s", path, document.KindOf(raw))
	}
	raw, _ = v.Get("key")
	key, ok := document.Text(raw)
	if !ok || key == "" {
		return nil, bad(CodeInvalid, "%s.key must be a text", path)
	}
	if c.variants[key] {
		return nil, bad(CodeInvalid, "%s.key: there is another variant %q", path, key)
	}
	c.variants[key] = true
	if err := percentage(v, path, true); err != nil {
		return nil, err
	}
	raw, _ = v.Get("rollout_percentage")
	return exact(raw), nil
}

// exact returns a number between 0 and 100 without rounding, so that the sum of
// 33.3, 33.3 and 33.4 is 100. Long texts and exponents are rounded to float64
// first, because the exact value of a short text such as 1e-999999 is huge.
func exact(raw json.RawMessage) *big.Rat {
	if len(raw) <= 20 && !bytes.ContainsAny(raw, "eE") {
		if r, ok := new(big.Rat).SetString(string(raw)); ok {
			return r
		}
	}
	var f float64
	_ = json.Unmarshal(raw, &f)
	r := new(big.Rat)
	r.SetFloat64(f)
	return r
}

// payloads checks that each payload has a variant, and encodes payloads that are
// not strings as JSON strings. A null payload is removed.
func (c *checker) payloads(d *document.Object) error {
	raw, ok := d.Given("payloads")
	if !ok {
		return nil
	}
	p, err := document.Parse(raw)
	if err != nil {
		return bad(CodeInvalid, "Payloads must be passed as a dictionary, got %s", document.KindOf(raw))
	}
	for _, name := range p.Names {
		if len(c.variants) > 0 && !c.variants[name] {
			return bad(CodeInvalid, "Payload keys must match a variant key for multivariate flags, got %q", name)
		}
		if len(c.variants) == 0 && name != "true" {
			return bad(CodeInvalid, "Payload keys must be 'true' for boolean flags, got %q", name)
		}
	}
	for _, name := range append([]string(nil), p.Names...) {
		raw, _ := p.Get(name)
		if document.IsNull(raw) {
			p.Remove(name)
			continue
		}
		if s, isText := document.Text(raw); !isText {
			var compact bytes.Buffer
			if err := json.Compact(&compact, raw); err != nil {
				return bad(CodeInvalid, "Payload value for key %q is not valid JSON", name)
			}
			p.Set(name, document.Quote(compact.String()))
		} else if !json.Valid([]byte(s)) {
			return bad(CodeInvalid, "Payload value for key %q is not valid JSON", name)
		}
	}
	d.Set("payloads", p.Raw())
	return nil
}
