package match_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/match"
)

// elementVectors is testdata/elements.json.
type elementVectors struct {
	Vectors []elementVector
	Actions []elementVector
	Serialise,
	Parse []struct {
		ID       string
		Chain    string `json:"elements_chain"`
		Elements json.RawMessage
	}
}

func loadVectors(t testing.TB) elementVectors {
	t.Helper()
	data, err := os.ReadFile("testdata/elements.json")
	if err != nil {
		t.Fatal(err)
	}
	var v elementVectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestChainVectors(t *testing.T) {
	t.Parallel()
	all := loadVectors(t)
	if len(all.Parse) < 6 || len(all.Serialise) < 7 {
		t.Fatal("vectors are missing")
	}
	for _, v := range all.Parse {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			var want []parsed
			if err := json.Unmarshal(v.Elements, &want); err != nil {
				t.Fatal(err)
			}
			if got := parse(v.Chain); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
	for _, v := range all.Serialise {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			if got := build(t, string(v.Elements)); got != v.Chain {
				t.Errorf("got  %s\nwant %s", got, v.Chain)
			}
		})
	}
}

// parsed is an element as the vectors write it.
type parsed struct {
	Tag       *string
	Classes   []string
	Text      *string
	Href      *string
	ID        *string
	NthChild  *int              `json:"nth_child"`
	NthOfType *int              `json:"nth_of_type"`
	Attrs     map[string]string `json:"attrs"`
}

func parse(chain string) []parsed {
	var out []parsed
	for _, e := range match.NewChain(chain).Elements() {
		out = append(out, parsed{
			Tag: some(e.Tag), Classes: append([]string{}, e.Classes()...), Text: some(e.Text), Href: some(e.Href), ID: some(e.ID),
			NthChild: place(e.NthChild), NthOfType: place(e.NthOfType), Attrs: attrs(&e, chain),
		})
	}
	return out
}

// attrs returns the element's value of every attribute name that occurs in chain.
func attrs(e *match.Element, chain string) map[string]string {
	out := map[string]string{}
	for _, part := range strings.Split(chain, "attr__")[1:] {
		name, _, _ := strings.Cut(part, "=")
		if v, ok := e.Attr(name); ok {
			out["attr__"+name] = v
		}
	}
	return out
}

func some(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func place(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

func build(t testing.TB, elements string) string {
	t.Helper()
	out, ok := new(match.ChainBuilder).Append(nil, []byte(elements))
	if !ok {
		t.Fatalf("%s is no list of elements", elements)
	}
	return string(out)
}

func TestChainParse(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, chain string
		tags        string
		attr, want  string // an attribute of the first element
	}{
		{"nothing has no elements", "", "", "", ""},
		{"white space and empty elements between semicolons are skipped", " a ;; b\n;c; ", "a b c", "", ""},
		{"a class may have a colon", `div.hover:bg:attr__x="1"`, "div", "x", "1"},
		{"a tag may have a colon", `svg:rect:attr__x="1"`, "svg:rect", "x", "1"},
		{"a key may have characters of templates", `a:attr__@click.prevent="go(1)"attr__:to="/x"nth-child="1"`, "a", ":to", "/x"},
		{"semicolons and white space in a value belong to it", `a:attr__x="1; b c";d`, "a d", "x", "1; b c"},
		{"a backslash before anything but a quote is itself", `a:attr__x="C:\dir\n"`, "a", "x", `C:\dir\n`},
		{"two backslashes before the closing quote are one", `a:attr__x="C:\\";b`, "a b", "x", `C:\`},
		{"three before a quote are one and the quote", `a:attr__x="C:\\\"";b`, "a b", "x", `C:\"`},
		{"a value without an end goes to the end", `a:attr__x="1;b`, "a", "x", "1;b"},
		{"of a key that comes twice the last counts", `a:attr__x="1"attr__x="2"`, "a", "x", "2"},
		{"the first key may be a short one", `a:attr_id="x"`, "a", "id", "x"},
		{"a key at the end has no value", `a:attr__x="1"y=`, "a", "x", "1"},
		{"a key may have an escaped quote", `a:attr__x\"y="1"`, "a", `x"y`, "1"},
		{"the short id goes before the long one", `a:attr__id="1"attr_id="2"`, "a", "id", "2"},
		{"the long href counts when there is no short one", `a:attr__href="/x"`, "a", "href", "/x"},
		{"what follows the attributes is skipped to the next element", `a:attr__x="1"junk;b`, "a b", "x", "1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			elements := match.NewChain(c.chain).Elements()
			var tags []string
			for _, e := range elements {
				tags = append(tags, e.Tag)
			}
			if got := strings.Join(tags, " "); got != c.tags {
				t.Fatalf("elements %q, want %q", got, c.tags)
			}
			if c.attr == "" {
				return
			}
			if got, ok := elements[0].Attr(c.attr); got != c.want || !ok {
				t.Errorf("%s is %q, %v; want %q", c.attr, got, ok, c.want)
			}
		})
	}
}

func TestChainClasses(t *testing.T) {
	t.Parallel()
	full := &match.NewChain(`a.w-1.5.x:attr__class="x  w-1.5"`).Elements()[0]
	bare := &match.NewChain(`a.w-1.5.x`).Elements()[0]
	cases := []struct {
		class      string
		full, bare bool
	}{
		{"x", true, true},
		{"w-1.5", true, true},
		{"w-1", false, true}, // ambiguous without the attribute
		{"5", false, true},
		{"w", false, false},
		{"", false, false},
		{"a", false, false},
		{".x", false, false},
		{".w-1", false, false},
	}
	for _, c := range cases {
		if full.HasClass(c.class) != c.full || bare.HasClass(c.class) != c.bare {
			t.Errorf("class %q: with the attribute %v, without %v", c.class, full.HasClass(c.class), bare.HasClass(c.class))
		}
	}
	if match.NewChain(`a.b.xy`).Elements()[0].HasClass("x") {
		t.Error("the start of a class is taken for a class")
	}
	empty := &match.NewChain(`a.x:attr__class=""`).Elements()[0]
	if !empty.HasClass("x") {
		t.Error("an empty attribute hides the classes in front")
	}
	if got := full.Classes(); !reflect.DeepEqual(got, []string{"x", "w-1.5"}) {
		t.Errorf("classes are %q", got)
	}
}

func TestChainBuild(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, elements, want string }{
		{"no elements", `[]`, ``},
		{"items that are not objects are skipped", `[null,1,{"tag_name":"a"},"x"]`, `a:nth-child="0"nth-of-type="0"`},
		{"the list of classes stands in when there is no attribute",
			`[{"tag_name":"a","classes":["b","a"]}]`, `a.a.b:nth-child="0"nth-of-type="0"`},
		{"the attribute goes before the list",
			`[{"tag_name":"a","classes":["b"],"attr__class":"c"}]`, `a.c:attr__class="c"nth-child="0"nth-of-type="0"`},
		{"places may be text, and are zero when unreadable",
			`[{"tag_name":"a","nth_child":"3","nth_of_type":-1}]`, `a:nth-child="3"nth-of-type="0"`},
		{"attributes need not be text", `[{"tag_name":"a","attr__x":5,"attr__y":true,"attr__z":null}]`,
			`a:attr__x="5"attr__y="true"nth-child="0"nth-of-type="0"`},
		{"no tag", `[{"attr__x":""}]`, `:attr__x=""nth-child="0"nth-of-type="0"`},
		{"a class loses its quotes only in front", `[{"tag_name":"i","attr__class":"c-[\"x\"]"}]`,
			`i.c-[x]:attr__class="c-[\"x\"]"nth-child="0"nth-of-type="0"`},
		{"backslashes before a quote or the end are doubled", `[{"tag_name":"a","attr__x":"\\\\a\\\"\\"}]`,
			`a:attr__x="\\a\\\"\\"nth-child="0"nth-of-type="0"`},
		{"a tag cannot end its element", `[{"tag_name":"a;b \"c"}]`, `abc:nth-child="0"nth-of-type="0"`},
		{"of an attribute that comes twice the last counts", `[{"attr__x":"1","attr__x":"2"}]`, `:attr__x="2"nth-child="0"nth-of-type="0"`},
		{"text is cut between characters", `[{"tag_name":"p","$el_text":"` + strings.Repeat("é", 401) + `"}]`,
			`p:nth-child="0"nth-of-type="0"text="` + strings.Repeat("é", 400) + `"`},
		{"only the short href is cut", `[{"tag_name":"p","attr__href":"` + strings.Repeat("x", 2049) + `"}]`,
			`p:attr__href="` + strings.Repeat("x", 2049) + `"href="` + strings.Repeat("x", 2048) + `"nth-child="0"nth-of-type="0"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := build(t, c.elements); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	for _, wrong := range []string{`{}`, `"a"`, `null`, `[`, ``} {
		if out, ok := new(match.ChainBuilder).Append([]byte("x"), []byte(wrong)); ok || string(out) != "x" {
			t.Errorf("%q was taken for a list: %s", wrong, out)
		}
	}
}

// TestChainOfOneMegabyte checks that hostile texts are read in linear time and
// that a Chain does not keep their memory.
func TestChainOfOneMegabyte(t *testing.T) {
	t.Parallel()
	for _, part := range []string{":", ":attr__", ":a", "a;", `\"`, `a:x="\`, `:x=""`, `x=`, `a:b="c"d="`, ".a", `:attr__="`} {
		text := strings.Repeat(part, 1<<20/len(part))
		if n := len(match.NewChain(text).Elements()); n > 1024 {
			t.Errorf("%q: %d elements", part, n)
		}
		text = "a:" + text
		match.NewChain(text).Elements()
	}
}

// FuzzChain checks that any text can be read and that built chains read back.
func FuzzChain(f *testing.F) {
	for _, v := range loadVectors(f).Parse {
		f.Add(v.Chain, "hover:x w-1.5", `say "hi"; \`)
	}
	f.Add(`a:attr__x="\`, `a"b`, `\\"`)
	f.Fuzz(func(t *testing.T, text, class, value string) {
		for _, e := range match.NewChain(text).Elements() {
			e.HasClass(class)
			e.Attr(value)
		}
		class, value = strings.ToValidUTF8(class, ""), strings.ToValidUTF8(value, "")
		element := map[string]any{"tag_name": "a", "attr__class": class, "attr__id": value, "attr__href": value, "$el_text": value, "nth_child": 7}
		data, err := json.Marshal([]any{element, element})
		if err != nil {
			t.Fatal(err)
		}
		got := match.NewChain(build(t, string(data))).Elements()
		if strings.Contains(class, ":attr__") { // ambiguous: looks like attributes
			return
		}
		if len(got) != 2 {
			t.Fatalf("%d elements: %s", len(got), build(t, string(data)))
		}
		e := &got[1]
		if e.ID != value || e.NthChild != 7 || utf8.RuneCountInString(value) <= 400 && (e.Text != value || e.Href != value) {
			t.Errorf("%q came back as %+v", value, *e)
		}
		if words, _ := e.Attr("class"); words != class {
			t.Errorf("class %q came back as %q", class, words)
		}
	})
}

func BenchmarkChainParse(b *testing.B) {
	c := match.NewChain("")
	b.SetBytes(int64(len(buttonChain)))
	b.ReportAllocs()
	for b.Loop() {
		c.Reset(buttonChain)
		c.Elements()
	}
}

func BenchmarkChainBuild(b *testing.B) {
	elements := []byte(`[{"tag_name":"button","$el_text":"Buy now","classes":["btn","primary"],"attr__id":"buy","attr__class":"btn primary",` +
		`"attr__data-attr":"buy-button","nth_child":2,"nth_of_type":1},{"tag_name":"body","nth_child":2,"nth_of_type":1}]`)
	var builder match.ChainBuilder
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out, _ = builder.Append(out[:0], elements)
	}
}
