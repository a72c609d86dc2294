package event_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
)

func TestDecodeElements(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, props, chain, left string }{
		{"a list becomes a chain", `{"a":1,"$elements":[{"tag_name":"b","$el_text":"Go","attr__class":"y x"},{"tag_name":"body"}],"z":2}`,
			`b.x.y:attr__class="y x"nth-child="0"nth-of-type="0"text="Go";body:nth-child="0"nth-of-type="0"`, `{"a":1,"z":2}`},
		{"a chain goes before a list", `{"$elements":[{"tag_name":"b"}],"$elements_chain":"a:text=\"x\""}`, `a:text="x"`, `{}`},
		{"an empty chain does not", `{"$elements":[{"tag_name":"b"}],"$elements_chain":""}`, `b:nth-child="0"nth-of-type="0"`, `{}`},
		{"nor does a chain that is null", `{"$elements":[{"tag_name":"b"}],"$elements_chain":null}`, `b:nth-child="0"nth-of-type="0"`, `{}`},
		{"an empty list is no chain", `{"$elements":[],"a":1}`, ``, `{"a":1}`},
		{"null is no chain", `{"$elements":null,"a":1}`, ``, `{"a":1}`},
		{"what is no list stays a property", `{"$elements":"x","$elements_chain":5}`, ``, `{"$elements":"x","$elements_chain":5}`},
		{"of two lists the last counts", `{"$elements":[{"tag_name":"a"}],"$elements":[{"tag_name":"b"}]}`, `b:nth-child="0"nth-of-type="0"`, `{}`},
		{"texts are mended like all others", "{\"$elements\":[{\"tag_name\":\"b\",\"$el_text\":\"a\\u0000\xff\\ud83d\n\",\"nth_child\":NaN}]}",
			"b:nth-child=\"0\"nth-of-type=\"0\"text=\"a\ufffd\ufffd\\ud83d\n\"", `{}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := ingestiontest.Decode(ingestiontest.Record(`{"event":"$autocapture","distinct_id":"u","properties":` + c.props + `}`))
			if len(got.Events) != 1 || len(got.Notices) != 0 {
				t.Fatalf("%d events, notices: %s", len(got.Events), ingestiontest.Kinds(got))
			}
			e := got.Events[0]
			if e.ElementsChain != c.chain || string(e.Properties) != c.left {
				t.Errorf("got  %s %s\nwant %s %s", e.ElementsChain, e.Properties, c.chain, c.left)
			}
		})
	}
}

// BenchmarkDecodeElements is one click with a list of elements, and with the
// chain that the list makes.
func BenchmarkDecodeElements(b *testing.B) {
	list := `"$elements":[{"tag_name":"button","$el_text":"Buy now","classes":["btn","primary"],"attr__id":"buy","attr__class":"btn primary",` +
		`"attr__data-attr":"buy-button","nth_child":2,"nth_of_type":1},{"tag_name":"body","nth_child":2,"nth_of_type":1}]`
	chain := `"$elements_chain":"button.btn.primary:attr__class=\"btn primary\"attr__data-attr=\"buy-button\"attr__id=\"buy\"attr_id=\"buy\"` +
		`nth-child=\"2\"nth-of-type=\"1\"text=\"Buy now\";body:nth-child=\"2\"nth-of-type=\"1\""`
	for _, c := range []struct{ name, props string }{{"none", `"k":1`}, {"list", list}, {"chain", chain}} {
		b.Run(c.name, func(b *testing.B) {
			rec := ingestiontest.Record(`{"event":"$autocapture","distinct_id":"u","properties":{"$event_type":"click",` + c.props + `}}`)
			d := event.NewDecoder(event.DefaultLimits())
			var out event.Decoded
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				d.Decode(&rec, &out)
			}
		})
	}
}
