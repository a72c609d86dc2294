package ai

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime/multipart"
	"net/textproto"
	"strings"
	"testing"
	"time"
)

type field struct{ name, kind, content string }

func form(t testing.TB, fields ...field) []byte {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary("x"); err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		h := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="` + f.name + `"; filename="b"`}}
		if f.kind != "" {
			h.Set("Content-Type", f.kind)
		}
		p, err := w.CreatePart(h)
		if err == nil {
			_, err = p.Write([]byte(f.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()
	return b.Bytes()
}

func TestBlobsBecomeProperties(t *testing.T) {
	e, err := readForm(form(t,
		field{"event", "application/json", `{"event":"$ai_generation","distinct_id":"ada","uuid":"u"}`},
		field{"event.properties", "application/json", `{"$ai_model":"m","nested":{"a":1}}`},
		field{"event.properties.$ai_input", "application/json", `[{"role":"user"}]`},
		field{"event.properties.$ai_output_choices", "text/plain; charset=utf-8", "hello \"you\""},
		field{"event.properties.vector", "application/octet-stream", "\xff\x00"},
		field{"event.properties.nested.b", "application/json", "2"},
	), "x", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	text, cut, err := e.build()
	const want = `{"distinct_id":"ada","event":"$ai_generation","properties":{"$ai_input":[{"role":"user"}],"$ai_model":"m",` +
		`"$ai_output_choices":"hello \"you\"","nested":{"a":1,"b":2},"vector":"/wA="},"uuid":"u"}`
	if err != nil || len(cut) > 0 || string(text) != want {
		t.Errorf("%v %v\ngot  %s\nwant %s", err, cut, text, want)
	}
}

func TestLargeEventIsTruncated(t *testing.T) {
	for _, kind := range []string{"application/json", "text/plain"} {
		large := strings.Repeat(`é"`, 40_000)
		if kind == "application/json" {
			raw, _ := json.Marshal([]string{large})
			large = string(raw)
		}
		e, err := readForm(form(t, field{"event", "", `{"event":"$ai_span","properties":{"n":1}}`},
			field{"event.properties.$ai_input_state", kind, large}, field{"event.properties.small", kind, `"s"`}), "x", 20_000)
		if err != nil {
			t.Fatal(err)
		}
		text, cut, err := e.build()
		if err != nil || len(text) > 20_000 || len(cut) != 1 || cut[0] != "$ai_input_state" || !json.Valid(text) ||
			!bytes.Contains(text, []byte("(truncated)")) || !bytes.Contains(text, []byte(`"$ai_truncated_properties":["$ai_input_state"]`)) {
			t.Errorf("%s: %v, %d bytes, %v", kind, err, len(text), cut)
		}
	}
}

func TestFormsThatAreRefused(t *testing.T) {
	event := field{"event", "", `{"event":"$ai_span"}`}
	for name, fields := range map[string][]field{
		"without an event":        {{"event.properties.a", "", "1"}},
		"two events":              {event, event},
		"an event that is a list": {{"event", "", `[]`}},
		"another name":            {{"event", "", `{"event":"paid"}`}},
		"an unknown part":         {event, {"file", "", "x"}},
		"a property twice":        {event, {"event.properties.a", "", "x"}, {"event.properties.a", "", "y"}},
		"a property of the event": {{"event", "", `{"event":"$ai_span","properties":{"a":1}}`}, {"event.properties.a", "", "x"}},
		"properties twice":        {{"event", "", `{"event":"$ai_span","properties":{}}`}, {"event.properties", "", `{}`}},
	} {
		e, err := readForm(form(t, fields...), "x", 1<<20)
		if err == nil {
			_, _, err = e.build()
		}
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := readForm([]byte("--x\r\nbroken"), "x", 1<<20); err == nil {
		t.Error("a broken form is accepted")
	}
}

func FuzzForm(f *testing.F) {
	f.Add(form(f, field{"event", "", `{"event":"$ai_span"}`}, field{"event.properties.a.b", "text/plain", "x"}, field{"event.properties.a", "application/json", `{"c":1}`}))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := readForm(data, "x", 500)
		if err != nil {
			return
		}
		if text, _, err := e.build(); err == nil && (!json.Valid(text) || len(text) > 500) {
			t.Fatalf("%d bytes: %s", len(text), text)
		}
	})
}

// Many parts for properties of one large, deep object decode it once.
func TestPartsOfALargeObjectAreCheap(t *testing.T) {
	inner := `{"wide":"` + strings.Repeat("x", 2<<20) + `"}`
	path := "event.properties"
	for range 60 {
		inner, path = `{"a":`+inner+`}`, path+".a"
	}
	fields := []field{{"event", "application/json", `{"event":"$ai_span"}`}, {"event.properties", "application/json", inner}}
	for i := range 97 {
		fields = append(fields, field{path + ".n" + string(rune('a'+i%26)) + string(rune('a'+i/26)), "text/plain", "v"})
	}
	began := time.Now()
	e, err := readForm(form(t, fields...), "x", 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.build(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}

// An event that cannot fit is refused before its properties are decoded.
func TestWideEventIsRefusedEarly(t *testing.T) {
	wide := strings.Repeat(`"a":1,`, 1<<20)
	began := time.Now()
	for _, name := range []string{"event", "event.properties"} {
		_, err := readForm(form(t, field{name, "application/json", `{` + wide + `"b":1}`}), "x", 1<<20)
		if !errors.Is(err, errTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}
