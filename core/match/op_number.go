package match

import (
	"cmp"
	"time"
)

// compileOrder compares numbers if both sides start with one, else texts byte by
// byte. Null and lists pass nothing.
func compileOrder(holds func(c int) bool) func(operand) (test, error) {
	return func(o operand) (test, error) {
		err := o.scalar()
		if !ordered(&o.value) {
			return never, err
		}
		text := loose(&o.value)
		number, numeric := o.value.leading()
		return func(v *Value, _ time.Time) bool {
			if !ordered(v) {
				return false
			}
			if numeric {
				if n, ok := v.leading(); ok {
					return holds(cmp.Compare(n, number))
				}
			}
			return holds(cmp.Compare(loose(v), text))
		}, err
	}
}

func ordered(v *Value) bool { return v.kind != Null && v.kind != Array && v.kind != Missing }

// compileBetween compares with [min, max], both inclusive. Only numbers pass,
// within or outside.
func compileBetween(within bool) func(operand) (test, error) {
	return func(o operand) (test, error) {
		var ends [2]float64
		items := o.items()
		good := o.value.kind == Array && len(items) == 2
		for i := range ends {
			if good {
				ends[i], good = items[i].whole()
			}
		}
		if !good {
			return never, o.problem("invalid_value", "it must be [min, max], two numbers")
		}
		return func(v *Value, _ time.Time) bool {
			n, ok := v.whole()
			return ok && (ends[0] <= n && n <= ends[1]) == within
		}, nil
	}
}
