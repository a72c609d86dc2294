package match

import "strconv"

// leading returns the number at the start of a value: a JSON number, or the
// longest prefix of a text that is a decimal number ("10", "1.5e3", and 3 in
// "3 apples", as in clients). It returns false for a number beyond the range.
func (v *Value) leading() (float64, bool) {
	if v.numeric == notTried {
		v.numeric = notNumber
		if v.kind == Number || v.kind == String {
			if n, ok := leadingNumber(v.text); ok {
				v.numeric, v.num = isNumber, n
			}
		}
	}
	return v.num, v.numeric == isNumber
}

func leadingNumber(s string) (float64, bool) {
	s = trimSpace(s)
	n, err := strconv.ParseFloat(s[:numberLength(s)], 64)
	return n, err == nil
}

// numberLength returns the length of the decimal number at the start of s: sign,
// digits with an optional point, exponent. It returns 0 without one.
func numberLength(s string) int {
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	whole := digits(s, i)
	end := i + whole
	fraction := 0
	if end < len(s) && s[end] == '.' {
		fraction = digits(s, end+1)
		if whole+fraction > 0 {
			end += 1 + fraction
		}
	}
	if whole+fraction == 0 {
		return 0
	}
	if end < len(s) && (s[end] == 'e' || s[end] == 'E') {
		e := end + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if n := digits(s, e); n > 0 {
			end = e + n
		}
	}
	return end
}

func digits(s string, from int) int {
	n := 0
	for from+n < len(s) && '0' <= s[from+n] && s[from+n] <= '9' {
		n++
	}
	return n
}

// whole returns the number of a value that is a number or a numeric text.
func (v *Value) whole() (float64, bool) {
	if v.kind != Number && (v.kind != String || v.text == "" || numberLength(v.text) != len(v.text)) {
		return 0, false
	}
	return v.leading()
}

func trimSpace(s string) string {
	for len(s) > 0 && (s[0] == ' ' || '\t' <= s[0] && s[0] <= '\r') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || '\t' <= s[len(s)-1] && s[len(s)-1] <= '\r') {
		s = s[:len(s)-1]
	}
	return s
}
