package match_test

import (
	"errors"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
)

func TestTextsThatAreTheSame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, operator, filter, property string
		want                             bool
	}{
		{"a number equals its text", "exact", `1`, `"1"`, true},
		{"with every digit", "exact", `1234567890`, `"1234567890"`, true},
		{"and a sign", "exact", `"-90"`, `-90`, true},
		{"a fraction equals its shortest text", "exact", `"1.5"`, `1.50`, true},
		{"a whole number with a fraction keeps it", "exact", `"1.0"`, `1.0`, true},
		{"and is not the number without", "exact", `1`, `1.0`, false},
		{"but looks like it to other operators", "ends_with", `"1"`, `1.0`, true},
		{"an exponent is written out", "exact", `"1500.0"`, `1.5e3`, true},
		{"very large numbers keep it", "exact", `"1e+21"`, `1000000000000000000000.0`, true},
		{"not those before", "exact", `"999999999999999900000.0"`, `9.999999999999999e20`, true},
		{"very small numbers keep it", "exact", `"1e-7"`, `0.0000001`, true},
		{"minus zero is zero", "exact", `0`, `-0`, true},
		{"digits beyond a float are kept", "exact", `12345678901234567890`, `12345678901234567890`, true},
		{"objects compare by their names", "exact", `"{\"a\":1,\"b\":[true,null]}"`, `{"b":[true,null], "a":1}`, true},
		{"case beyond ASCII", "exact", `"ÄÖÜ"`, `"äöü"`, true},
		{"a final sigma is a sigma at the end", "exact", `"ΟΔΟΣ"`, `"οδος"`, true},
		{"and only there", "exact", `"ΟΔΟΣ"`, `"οδοσ"`, false},
		{"a dotted capital I keeps its dot", "exact", `"İ"`, `"i̇"`, true},
		{"the kelvin sign is a k", "exact", `"K"`, `"k"`, true},
		{"looking for a text folds ASCII only", "icontains", `"Ä"`, `"xäx"`, false},
		{"more than eight values", "exact", `["a","b","c","d","e","f","g","h","Ä",9]`, `"ä"`, true},
		{"and a number among them", "is_not", `["a","b","c","d","e","f","g","h","i",9]`, `9`, false},
		{"a list is its elements", "regex", `"^a,,1,c,d$"`, `["a",null,1.0,["c","d"]]`, true},
		{"an object has no text of its own", "icontains", `"object"`, `{"a":1}`, true},
		{"the empty text is in everything", "icontains", `""`, `5`, true},
		{"escapes are undone", "exact", `"a\u00e9\n"`, `"aé\n"`, true},
		{"numbers may have white space before and rubbish behind", "gt", `9`, `"  10 apples"`, true},
		{"a control character is no white space", "gt", `4`, `"\u00015"`, false},
		{"a text is before no date", "is_date_before", `"30d"`, `"soon"`, false},
		{"an exponent counts", "lt", `"1e3"`, `999`, true},
		{"infinity is a text", "gt", `"Infinity"`, `1e300`, false},
		{"a sign alone is a text", "gt", `"-"`, `"."`, true},
		{"a point alone is a text", "lt", `"."`, `"-"`, true},
		{"texts compare by bytes", "lt", `"b"`, `"a"`, true},
		{"between takes whole numbers only", "between", `[1,2]`, `"1 apple"`, false},
		{"and compares fractions", "between", `["1.5",1.75]`, `"1.6"`, true},
		{"ends in the wrong order hold nothing", "between", `[2,1]`, `1.5`, false},
		{"and leave out nothing", "not_between", `[2,1]`, `1.5`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := ask(t, c.operator, c.filter, c.property); got != match.Of(c.want) {
				t.Errorf("%s %s on %s: got %s", c.operator, c.filter, c.property, got)
			}
		})
	}
}

func TestDates(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, filter, property string
		location               *time.Location
		now                    string
	}{
		{name: "an offset", filter: `"2024-06-01T12:00:00+02:00"`, property: `"2024-06-01T10:00:00Z"`},
		{name: "no colon in it", filter: `"2024-06-01 12:00:00.000 +0200"`, property: `"2024-06-01T10:00"`},
		{name: "hours only", filter: `"2024-06-01T12:00:00+02"`, property: `"2024-06-01t10:00:00z"`},
		{name: "none is the project's", filter: `"2024-06-01 12:00:00"`, property: `"2024-06-01T10:00:00Z"`, location: berlin},
		{name: "so is midnight", filter: `"2024-06-01"`, property: `"2024-05-31T22:00:00Z"`, location: berlin},
		{name: "and the property's", filter: `"2024-05-31T22:00:00Z"`, property: `"2024-06-01"`, location: berlin},
		{name: "seconds", filter: `"2024-06-01"`, property: `1717200000`},
		{name: "seconds as text", filter: `"2024-06-01"`, property: `"1717200000"`},
		{name: "fractions of them", filter: `"2024-06-01T00:00:00.25Z"`, property: `1717200000.25`},
		{name: "milliseconds", filter: `"2024-06-01T00:00:00.250Z"`, property: `1717200000250`},
		{name: "the first milliseconds", filter: `"1973-03-03T09:46:40Z"`, property: `100000000000`},
		{name: "the last seconds", filter: `"5138-11-16T09:46:39Z"`, property: `99999999999`},
		{name: "a year", filter: `"2024-01-01"`, property: `"2024"`},
		{name: "a month", filter: `"2024-05-01"`, property: `"2024-05"`},
		{name: "a mail's", filter: `"2024-06-01"`, property: `"Sat, 01 Jun 2024 00:00:00 GMT"`},
		{name: "with slashes", filter: `"2024-06-01"`, property: `"2024/06/01"`},
		{name: "in words", filter: `"2024-06-01"`, property: `"June 1, 2024"`},
		{name: "days ago", filter: `"30d"`, property: `"2026-03-01T12:00:00Z"`},
		{name: "the sign means nothing", filter: `"-30d"`, property: `"2026-03-01T12:00:00Z"`},
		{name: "hours ago", filter: `"36h"`, property: `"2026-03-30T00:00:00Z"`},
		{name: "weeks ago", filter: `"2w"`, property: `"2026-03-17T12:00:00Z"`},
		{name: "a month ago ends with the month", filter: `"1m"`, property: `"2026-02-28T12:00:00Z"`},
		{name: "and stays so further back", filter: `"2m"`, property: `"2026-01-28T12:00:00Z"`},
		{name: "leap years have a day more", filter: `"1m"`, property: `"2024-02-29T12:00:00Z"`, now: "2024-03-31T12:00:00Z"},
		{name: "a year ago", filter: `"1y"`, property: `"2025-03-31T12:00:00Z"`},
		{name: "a year before a leap day", filter: `"4y"`, property: `"2020-02-28T12:00:00Z"`, now: "2024-02-29T12:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, err := match.Compile(match.Spec{Operator: "is_date_exact", Value: []byte(c.filter)}, match.Options{Location: c.location})
			if err != nil || f.Problem() != nil {
				t.Fatal(err, f.Problem())
			}
			v, err := match.Parse([]byte(c.property))
			if err != nil {
				t.Fatal(err)
			}
			env := match.Env{Now: now}
			if c.now != "" {
				env.Now, _ = time.Parse(time.RFC3339, c.now)
			}
			if f.Match(&v, &env) != match.True {
				t.Errorf("%s is not %s", c.property, c.filter)
			}
		})
	}
	for _, no := range []string{`"2024-13-01"`, `"2024-02-30"`, `"2024-06-01T25:00"`, `"2024-06-01T10"`, `"2024-06-01T10:"`, `"2024-06-01T10:00:"`, `"2024-06-01T10:00:00+2"`, `"yesterday"`, `""`, `"10000d"`, `"5x"`, `"d"`, `true`, `null`, `[]`, `1e18`} {
		if _, err := match.CompileFilter([]byte(`{"key":"p","operator":"is_date_before","value":`+no+`}`), match.Options{}); fault.From(err) == nil || fault.From(err).Code != "invalid_date" {
			t.Errorf("%s: got %v", no, err)
		}
	}
}

func TestCompileFilterReportsProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ filter, code string }{
		{`7`, "invalid_input"}, {`{"operator":"exact","value":1}`, "required"}, {`{"key":"p","operator":"teleports","value":1}`, "invalid_operator"},
		{`{"key":"p","operator":"in","value":1}`, "invalid_operator"}, {`{"key":"p","operator":"cidr/contains","value":1}`, "invalid_operator"},
		{`{"key":"p"}`, "invalid_value"}, {`{"key":"p","operator":"is_set"}`, ""}, {`{"key":"p","value":{"any":"thing"}}`, ""},
		{`{"key":"p","operator":"icontains","value":["a"]}`, "invalid_value"}, {`{"key":"p","operator":"icontains","value":7}`, ""},
		{`{"key":"p","operator":"gt","value":true}`, "invalid_value"}, {`{"key":"p","operator":"gt","value":7}`, ""}, {`{"key":"p","operator":"gt","value":[7]}`, "invalid_value"}, {`{"key":"p","operator":"lt","value":null}`, "invalid_value"}, {`{"key":"p","operator":"gt","value":"x"}`, ""},
		{`{"key":"p","operator":"regex","value":"("}`, "invalid_input"}, {`{"key":"p","operator":"not_regex","value":"(?!a)"}`, "invalid_input"},
		{`{"key":"p","operator":"regex","value":"(a)\\1"}`, "invalid_input"}, {`{"key":"p","operator":"regex","value":"(?i)^a+$"}`, ""},
		{`{"key":"p","operator":"between","value":[1]}`, "invalid_value"}, {`{"key":"p","operator":"not_between","value":[1,"x"]}`, "invalid_value"},
		{`{"key":"p","operator":"icontains_multi","value":"a"}`, "invalid_value"}, {`{"key":"p","operator":"icontains_multi","value":["a"]}`, ""},
		{`{"key":"p","operator":"semver_eq","value":"one"}`, "invalid_value"}, {`{"key":"p","operator":"semver_wildcard","value":"1.*.3"}`, "invalid_value"},
		{`{"key":"p","operator":"semver_wildcard","value":"1.2.*"}`, ""}, {`{"key":"p","operator":"semver_wildcard","value":"1..2"}`, "invalid_value"}, {`{"key":"p","operator":"min","value":1}`, ""},
	} {
		_, err := match.CompileFilter([]byte(c.filter), match.Options{})
		f := fault.From(err)
		if (f == nil) != (c.code == "") || f != nil && (f.Code != c.code || f.Kind != fault.Invalid || f.Detail == "") {
			t.Errorf("%s: got %v, want %s", c.filter, err, c.code)
		}
	}
}

// oracle is a Registry of one operator.
type oracle struct{}

func (oracle) Operator(id string) (match.ExternalOperator, bool) {
	return match.ExternalOperator{Missing: match.True, Source: "a", Compile: func(value []byte) (match.Compiled, error) {
		if string(value) == "0" {
			return match.Compiled{}, errors.New("not that")
		}
		return match.Compiled{Program: match.Program(value), Open: string(value) == "9"}, nil
	}}, id == "a/b"
}

// Match passes a value that equals the program.
func (oracle) Match(p match.Program, v *match.Value) match.Result {
	return match.Of(string(v.AppendTo(nil)) == string(p))
}

func TestOperatorsOfPlugins(t *testing.T) {
	t.Parallel()
	f, err := match.Compile(match.Spec{Key: "p", Operator: "a/b", Value: []byte("7")}, match.Options{Registry: oracle{}})
	if err != nil || !f.External() || f.Property() != "p" || f.Operator() != "a/b" || string(f.Expected()) != "7" {
		t.Fatalf("%+v %v", f, err)
	}
	seven, _ := match.Parse([]byte("7"))
	var nothing match.Value
	for _, c := range []struct {
		name string
		v    *match.Value
		env  match.Env
		want match.Result
	}{
		{"no external", &seven, match.Env{}, match.Unknown},
		{"an external", &seven, match.Env{External: oracle{}}, match.True},
		{"a missing value needs no external", &nothing, match.Env{}, match.True},
	} {
		if got := f.Match(c.v, &c.env); got != c.want {
			t.Errorf("%s: got %s", c.name, got)
		}
	}
	for _, value := range []string{"9", "0"} { // not checked yet, and refused
		f, err := match.Compile(match.Spec{Key: "p", Operator: "a/b", Value: []byte(value)}, match.Options{Registry: oracle{}})
		if err != nil || !f.Open() || f.Source() != "a" {
			t.Fatalf("%s: %+v %v", value, f, err)
		}
		for _, v := range []*match.Value{&seven, &nothing} {
			if got := f.Match(v, &match.Env{External: oracle{}}); got != match.Unknown {
				t.Errorf("open on %q: got %s", v.Content(), got)
			}
		}
	}
	if _, err := match.CompileFilter([]byte(`{"key":"p","operator":"a/b","value":0}`), match.Options{Registry: oracle{}}); err == nil {
		t.Error("the plugin's refusal is lost")
	}
}

func BenchmarkFilters(b *testing.B) {
	for _, c := range []struct{ name, operator, filter, property string }{
		{"exact", "exact", `["pro","team"]`, `"Team"`}, {"icontains", "icontains", `"corp.test"`, `"Somebody@CORP.test"`},
		{"gt", "gt", `"5"`, `"10"`}, {"regex", "regex", `"^some.*test$"`, `"some.body@corp.test"`},
		{"date", "is_date_after", `"-30d"`, `"2026-03-20T10:00:00Z"`}, {"semver", "semver_caret", `"1.2.3"`, `"1.4.0"`},
	} {
		b.Run(c.name, func(b *testing.B) {
			f, _ := match.Compile(match.Spec{Operator: c.operator, Value: []byte(c.filter)}, match.Options{})
			v, _ := match.Parse([]byte(c.property))
			env := match.Env{Now: now}
			b.ReportAllocs()
			for b.Loop() {
				if f.Match(&v, &env) != match.True {
					b.Fatal("no match")
				}
			}
		})
	}
}
