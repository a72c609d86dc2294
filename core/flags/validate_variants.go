package flags

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
)

// multivariate checks the variants and remembers their keys.
func (c *checker) multivariate(d *document) error {
	c.variants = map[string]bool{}
	raw, ok := d.given("multivariate")
	if !ok {
		return nil
	}
	m, err := parseDocument(raw)
	if err != nil {
		return bad(codeInvalid, "multivariate must be an object or null, got %s", kindOf(raw))
	}
	raw, ok = m.given("variants")
	if !ok {
		return nil
	}
	list, err := parseList(raw)
	if err != nil {
		return bad(codeInvalid, "multivariate.variants must be a list, got %s", kindOf(raw))
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
		return bad(codeInvalid, "Invalid variant definitions: Variant rollout percentages must sum to 100, got %s", sum.FloatString(2))
	}
	return nil
}

func (c *checker) variant(raw json.RawMessage, path string) (*big.Rat, error) {
	v, err := parseDocument(raw)
	if err != nil {
		return nil, bad(codeInvalid, "%s must be an object, got %s", path, kindOf(raw))
	}
	raw, _ = v.get("key")
	key, ok := text(raw)
	if !ok || key == "" {
		return nil, bad(codeInvalid, "%s.key must be a text", path)
	}
	if c.variants[key] {
		return nil, bad(codeInvalid, "%s.key: there is another variant %q", path, key)
	}
	c.variants[key] = true
	if err := percentage(v, path, true); err != nil {
		return nil, err
	}
	raw, _ = v.get("rollout_percentage")
	return exact(raw), nil
}

// exact is a number between 0 and 100 without rounding, so that 33.3, 33.3
// and 33.4 make 100. Digits beyond any use are rounded by float64 first: a
// short text can name a number that fills the memory.
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

// payloads checks that each payload has a variant, and turns every payload
// that is not a JSON string yet into one. A null payload is no payload.
func (c *checker) payloads(d *document) error {
	raw, ok := d.given("payloads")
	if !ok {
		return nil
	}
	p, err := parseDocument(raw)
	if err != nil {
		return bad(codeInvalid, "Payloads must be passed as a dictionary, got %s", kindOf(raw))
	}
	for _, name := range p.names {
		if len(c.variants) > 0 && !c.variants[name] {
			return bad(codeInvalid, "Payload keys must match a variant key for multivariate flags, got %q", name)
		}
		if len(c.variants) == 0 && name != "true" {
			return bad(codeInvalid, "Payload keys must be 'true' for boolean flags, got %q", name)
		}
	}
	for _, name := range append([]string(nil), p.names...) {
		raw, _ := p.get(name)
		if isNull(raw) {
			p.remove(name)
			continue
		}
		if s, isText := text(raw); !isText {
			var compact bytes.Buffer
			if err := json.Compact(&compact, raw); err != nil {
				return bad(codeInvalid, "Payload value for key %q is not valid JSON", name)
			}
			p.set(name, quote(compact.String()))
		} else if !json.Valid([]byte(s)) {
			return bad(codeInvalid, "Payload value for key %q is not valid JSON", name)
		}
	}
	d.set("payloads", p.raw())
	return nil
}
