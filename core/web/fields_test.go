package web_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

func decode(t *testing.T, s sent) (*web.Fields, error) {
	t.Helper()
	c := request(s)
	defer release(c)
	return web.Decode(c, limits)
}

const jsonType = "application/json"

func TestFieldErrors(t *testing.T) {
	t.Parallel()
	str := func(rules ...web.Rule) func(*web.Fields) { return func(f *web.Fields) { f.String("key", rules...) } }
	for name, tc := range map[string]struct {
		body string
		read func(*web.Fields)
		want string // attr code: detail; empty: nothing is wrong
	}{
		"a text":                             {`{"key":"x"}`, str(web.Required), ""},
		"a text that is missing":             {`{}`, str(), ""},
		"a required text that is missing":    {`{}`, str(web.Required), "key required: This field is required."},
		"null":                               {`{"key":null}`, str(), "key null: This field may not be null."},
		"null where it may be":               {`{"key":null}`, str(web.Nullable, web.Required), ""},
		"blank":                              {`{"key":"  "}`, str(), "key blank: This field may not be blank."},
		"blank where it may be":              {`{"key":""}`, str(web.Blank), ""},
		"too long":                           {`{"key":"abcé"}`, str(web.Max(3)), "key max_length: Ensure this field has no more than 3 characters."},
		"just long enough":                   {`{"key":"abé"}`, str(web.Max(3)), ""},
		"a number counts as text":            {`{"key":7}`, str(), ""},
		"a truth value does not":             {`{"key":true}`, str(), "key invalid_input: Not a valid string."},
		"nor does a list":                    {`{"key":["a"]}`, str(), "key invalid_input: Not a valid string."},
		"NUL":                                {`{"key":"a\u0000"}`, str(), "key null_characters_not_allowed: Null characters are not allowed."},
		"half a pair":                        {`{"key":"a\ud83d"}`, str(), "key surrogate_characters_not_allowed: Surrogate characters are not allowed."},
		"a whole pair":                       {`{"key":"a\ud83d\udcbb"}`, str(), ""},
		"not one of the choices":             {`{"key":"c"}`, str(web.OneOf("a", "b")), `key invalid_choice: "c" is not a valid choice.`},
		"a truth value, in words":            {`{"key":"True"}`, func(f *web.Fields) { f.Bool("key") }, ""},
		"no truth value":                     {`{"key":"maybe"}`, func(f *web.Fields) { f.Bool("key") }, "key invalid_input: Must be a valid boolean."},
		"a list is no truth value":           {`{"key":[]}`, func(f *web.Fields) { f.Bool("key") }, "key invalid_input: Must be a valid boolean."},
		"a whole number":                     {`{"key":21}`, func(f *web.Fields) { f.Int("key") }, ""},
		"a whole number in quotes":           {`{"key":" 21 "}`, func(f *web.Fields) { f.Int("key") }, ""},
		"a fraction of nothing":              {`{"key":21.00}`, func(f *web.Fields) { f.Int("key") }, ""},
		"a fraction":                         {`{"key":21.5}`, func(f *web.Fields) { f.Int("key") }, "key invalid_input: A valid integer is required."},
		"too large":                          {`{"key":101}`, func(f *web.Fields) { f.Int("key", web.Max(100)) }, "key max_value: Ensure this value is less than or equal to 100."},
		"too small":                          {`{"key":-1}`, func(f *web.Fields) { f.Number("key", web.Min(0)) }, "key min_value: Ensure this value is greater than or equal to 0."},
		"no number":                          {`{"key":"NaN"}`, func(f *web.Fields) { f.Number("key") }, "key invalid_input: A valid number is required."},
		"no time":                            {`{"key":"yesterday"}`, func(f *web.Fields) { f.Time("key") }, "key invalid_input: Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]."},
		"no UUID":                            {`{"key":"018b"}`, func(f *web.Fields) { f.UUID("key") }, "key invalid_input: Must be a valid UUID."},
		"no object":                          {`{"key":[1]}`, func(f *web.Fields) { f.Object("key") }, `key not_a_dict: Expected a dictionary of items but got type "list".`},
		"no list":                            {`{"key":"a"}`, func(f *web.Fields) { f.List("key") }, `key not_a_list: Expected a list of items but got type "str".`},
		"a text in a list that is none":      {`{"key":["a",{}]}`, func(f *web.Fields) { f.Strings("key") }, "key__1 invalid_input: Not a valid string."},
		"a number in a list that is none":    {`{"key":[1,"x"]}`, func(f *web.Fields) { f.Ints("key") }, "key__1 invalid_input: A valid integer is required."},
		"a field inside an object":           {`{"key":{"url":7,"name":null}}`, func(f *web.Fields) { f.Sub("key").Value.String("name") }, "key__name null: This field may not be null."},
		"a field inside an item of a list":   {`{"steps":[{"url":"a"},{"url":{}}]}`, readSteps, "steps__1__url invalid_input: Not a valid string."},
		"an item that is no object":          {`{"steps":[{"url":"a"},7]}`, readSteps, "steps__1 invalid_input: Invalid data. Expected a dictionary, but got int."},
		"only the first failure counts":      {`{"a":null}`, func(f *web.Fields) { f.Bool("a"); f.String("b", web.Required) }, "a null: This field may not be null."},
		"a rule of the handler":              {`{"key":"a b"}`, func(f *web.Fields) { f.Fail("key", "invalid_key", "Only letters.") }, "key invalid_key: Only letters."},
		"of a repeated name the last counts": {`{"key":null,"key":"x"}`, str(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := decode(t, sent{kind: jsonType, body: []byte(tc.body)})
			if err != nil {
				t.Fatal(err)
			}
			tc.read(f)
			got := ""
			if e := fault.From(f.Err()); e != nil {
				got = fmt.Sprintf("%s %s: %s", e.Attr, e.Code, e.Detail)
			}
			if got != tc.want {
				t.Errorf("%s\n got %q\nwant %q", tc.body, got, tc.want)
			}
		})
	}
}

func readSteps(f *web.Fields) {
	for _, step := range f.Items("steps").Value {
		step.String("url")
	}
}

func TestFieldValues(t *testing.T) {
	t.Parallel()
	f, err := decode(t, sent{kind: "application/json; charset=utf-8", body: []byte(` {
		"name": "  Roll out \u2615  ", "active": "off", "n": "12", "f": 0.5, "at": "2023-10-02T09:00:00.1234567+02:00", "day": "2023-10-02T09:00",
		"id": "018B0C1E11117AAA8BBB0123456789AB", "filters": {"groups": [{"rollout_percentage": 30.0}]}, "tags": ["a", "b"], "ids": [1, "2"],
		"nothing": null, "personal_api_key": "phx_x"} `)})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(
		f.String("name").Value, f.Bool("active").Value, f.Int("n").Value, f.Number("f").Value,
		f.Time("at").Value.Format(time.RFC3339Nano), f.Time("day").Value.Format(time.RFC3339Nano), f.UUID("id").Value,
		string(f.Object("filters").Value), f.Strings("tags").Value, f.Ints("ids").Value, f.Strings("none").Set, f.Bool("nothing", web.Nullable).Null,
		f.Int("none").Or(9), f.Int("nothing", web.Nullable).Or(8), string(f.Any("n").Value), string(f.Raw("f")), f.Has("nothing"), f.Has("none"))
	want := fmt.Sprint("Roll out ☕", false, int64(12), 0.5,
		"2023-10-02T07:00:00.123456Z", "2023-10-02T09:00:00Z", "018b0c1e-1111-7aaa-8bbb-0123456789ab",
		`{"groups": [{"rollout_percentage": 30.0}]}`, []string{"a", "b"}, []int64{1, 2}, false, true,
		int64(9), int64(8), `"12"`, "0.5", true, false)
	if got != want || f.Err() != nil {
		t.Errorf("got  %s\nwant %s\nerr %v", got, want, f.Err())
	}
	if names := strings.Join(f.Names(), " "); names != "name active n f at day id filters tags ids nothing" {
		t.Errorf("Names = %s", names)
	}
}

func TestFieldsOfForms(t *testing.T) {
	t.Parallel()
	multipart := "--X\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nA flag\r\n" +
		"--X\r\nContent-Disposition: form-data; name=\"tags\"\r\n\r\na\r\n--X\r\nContent-Disposition: form-data; name=\"tags\"\r\n\r\nb\r\n" +
		"--X\r\nContent-Disposition: form-data; name=\"filters\"\r\n\r\n{\"groups\":[]}\r\n" +
		"--X\r\nContent-Disposition: form-data; name=\"active\"\r\n\r\non\r\n--X--\r\n"
	for name, s := range map[string]sent{
		"urlencoded": {kind: form, body: []byte("name=A+flag&tags=a&tags=b&filters=%7B%22groups%22%3A%5B%5D%7D&active=on&personal_api_key=phx")},
		"multipart":  {kind: "multipart/form-data; boundary=X", body: []byte(multipart)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := decode(t, s)
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(f.String("name").Value, f.Strings("tags").Value, string(f.Object("filters").Value), f.Bool("active").Value, f.Has("personal_api_key"), f.Err())
			if want := fmt.Sprint("A flag", []string{"a", "b"}, `{"groups":[]}`, true, false, nil); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestDecodeRejects(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sent
		kind   fault.Kind
		code   string
		detail string
	}{
		"JSON that cannot be read":    {sent{kind: jsonType, body: []byte(`{"a":}`)}, fault.Malformed, "parse_error", "JSON parse error - a value was expected (byte 5)"},
		"a list":                      {sent{kind: jsonType, body: []byte(`[1]`)}, fault.Invalid, "invalid_input", "Invalid data. Expected a dictionary, but got list."},
		"null":                        {sent{kind: jsonType, body: []byte(`null`)}, fault.Invalid, "invalid_input", "Invalid data. Expected a dictionary, but got NoneType."},
		"NaN, which is not JSON":      {sent{kind: jsonType, body: []byte(`{"a":NaN}`)}, fault.Malformed, "parse_error", ""},
		"bytes that are not UTF-8":    {sent{kind: jsonType, body: []byte("{\"a\":\"\xff\"}")}, fault.Malformed, "parse_error", ""},
		"a raw line feed in a text":   {sent{kind: jsonType, body: []byte("{\"a\":\"\n\"}")}, fault.Malformed, "parse_error", ""},
		"JSON that is nested too far": {sent{kind: jsonType, body: []byte(`{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`)}, fault.Malformed, "parse_error", ""},
		"another content type":        {sent{kind: "text/csv", body: []byte("a,b")}, fault.Unsupported, "unsupported_media_type", `Unsupported media type "text/csv" in request.`},
		"another content encoding":    {sent{kind: jsonType, encoding: "lzma", body: []byte("{}")}, fault.Unsupported, "unsupported_media_type", ""},
		"gzip that is none":           {sent{kind: jsonType, encoding: "gzip", body: []byte("{}")}, fault.Malformed, "parse_error", ""},
		"a gzip bomb":                 {sent{kind: jsonType, encoding: "gzip", body: gz(bytes.Repeat([]byte(" "), 2<<20))}, fault.TooLarge, "request_too_large", ""},
		"a damaged multipart form":    {sent{kind: "multipart/form-data; boundary=X", body: []byte("--Y")}, fault.Malformed, "parse_error", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := decode(t, tc.sent)
			f := fault.From(err)
			if f == nil || f.Kind != tc.kind || f.Code != tc.code || (tc.detail != "" && f.Detail != tc.detail) {
				t.Errorf("Decode: %v", err)
			}
		})
	}
}

func TestDecodeAccepts(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]sent{
		"gzip":                        {kind: jsonType, encoding: "gzip", body: gz([]byte(`{"a":1}`))},
		"no content type":             {body: []byte(`{"a":1}`)},
		"a kind of JSON":              {kind: "application/merge-patch+json", body: []byte(`{"a":1}`)},
		"JSON that curl calls a form": {kind: form, body: []byte(`{"a":1}`)},
	} {
		f, err := decode(t, s)
		if err != nil || f.Int("a").Value != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f, err := decode(t, sent{kind: "text/csv"}); err != nil || len(f.Names()) != 0 {
		t.Errorf("no body at all: %v, %v", f, err)
	}
}
