package filters

import (
	"strings"

	"github.com/valyala/fastjson"
)

// CurrentName returns the property that replaces a missing $initial_ property:
// its current value. It returns "" for other properties.
func CurrentName(key string) string {
	rest, ok := strings.CutPrefix(key, "$initial_")
	switch {
	case !ok || rest == "":
		return ""
	case strings.HasPrefix(rest, "utm_"):
		return rest
	}
	return "$" + rest
}

// Expectation is the value that a filter on another flag requires.
type Expectation struct {
	On      bool   // true: on with any variant; false: off
	Variant string // on with this variant
	Never   bool   // the expected value is not valid: no match
}

// ExpectationOf reads the value of a filter on another flag.
func ExpectationOf(p *Property) Expectation {
	v, err := fastjson.ParseBytes(p.Value)
	if err != nil || (p.Operator != "" && p.Operator != "exact" && p.Operator != "flag_evaluates_to") {
		return Expectation{Never: true}
	}
	switch v.Type() {
	case fastjson.TypeTrue:
		return Expectation{On: true}
	case fastjson.TypeFalse:
		return Expectation{}
	case fastjson.TypeString:
		if name := string(v.GetStringBytes()); name != "" {
			return Expectation{Variant: name}
		}
	default:
	}
	return Expectation{Never: true}
}
