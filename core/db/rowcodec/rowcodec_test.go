package rowcodec_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/guidonhq/guidon/core/db/rowcodec"
)

// row is a page view as a browser sends it.
func row(r *rand.Rand) rowcodec.Sample {
	path := fmt.Sprintf("/%s/%d", []string{"insights", "home", "pricing", "docs", "blog"}[r.IntN(5)], r.IntN(500))
	who := uuid.NewSHA1(uuid.Nil, fmt.Append(nil, r.IntN(20_000))).String()
	address := fmt.Sprintf("https://app.example.com%s?x=%d", path, r.IntN(1e6))
	return rowcodec.Sample{
		Plain: fmt.Appendf(nil, `{"token":"phc_8a7sd6f87asd6f8as7d6f","distinct_id":"%s","$device_id":"%s","$current_url":"%s","$host":"app.example.com",`+
			`"$pathname":"%s","$browser":"%s","$browser_version":%d,"$os":"%s","$device_type":"Desktop",`+
			`"$session_id":"%s","$window_id":"%s","$lib":"web","$lib_version":"1.96.1","$screen_height":%d,"$screen_width":%d,`+
			`"$viewport_height":%d,"$viewport_width":%d,"$referrer":"$direct","$referring_domain":"$direct","$insert_id":"%016x","$time":%d.%03d,"amount":%d}`,
			who, who, address, path, []string{"Chrome", "Safari", "Firefox"}[r.IntN(3)], 100+r.IntN(30), []string{"Mac OS X", "Windows", "Linux"}[r.IntN(3)],
			random(r), random(r), 700+20*r.IntN(20), 1000+40*r.IntN(30), r.IntN(1200), r.IntN(1920), r.Uint64(), 1730000000+r.IntN(1e7), r.IntN(1000), r.IntN(1000)),
		Columns: rowcodec.Columns{DistinctID: []byte(who), URL: []byte(address)},
	}
}

func random(r *rand.Rand) uuid.UUID {
	return uuid.NewSHA1(uuid.Nil, fmt.Append(nil, r.Uint64()))
}

func rows(n int, seed uint64) []rowcodec.Sample {
	r := rand.New(rand.NewPCG(seed, 2))
	out := make([]rowcodec.Sample, n)
	for i := range out {
		out[i] = row(r)
	}
	return out
}

func trained(t testing.TB, samples []rowcodec.Sample) *rowcodec.Dictionary {
	t.Helper()
	d, err := rowcodec.NewDictionary(7, rowcodec.Train(samples))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRowsShrinkAndReturn(t *testing.T) {
	t.Parallel()
	d := trained(t, rows(1000, 1))
	var b rowcodec.Buffer
	var stored, plain []byte
	in, out := 0, 0
	for _, s := range rows(1000, 2) {
		var ok bool
		if stored, ok = d.Encode(stored[:0], s.Plain, s.Columns, &b); !ok {
			t.Fatalf("not compressed: %s", s.Plain)
		}
		if id, err := rowcodec.DictionaryOf(stored); err != nil || id != 7 {
			t.Fatalf("dictionary %d, %v", id, err)
		}
		var err error
		if plain, err = d.Decode(plain[:0], stored, s.Columns, &b); err != nil || !bytes.Equal(plain, s.Plain) {
			t.Fatalf("got %s (%v), want %s", plain, err, s.Plain)
		}
		in, out = in+len(s.Plain), out+len(stored)
	}
	t.Logf("%d bytes a row, %d compressed", in/1000, out/1000)
	if out > in/4 {
		t.Errorf("%d bytes became %d, want at most a quarter", in, out)
	}
}

func TestTextsThatAreNotCompressed(t *testing.T) {
	t.Parallel()
	d := trained(t, rows(1000, 1))
	for name, plain := range map[string]string{
		"empty":               "",
		"short":               "{}",
		"control characters":  "{\"a\":\"\x01\",\"$lib\":\"web\",\"$lib_version\":\"1.96.1\"}",
		"control before text": "\x02{\"$lib\":\"web\",\"$lib_version\":\"1.96.1\"}",
		"too long":            `{"a":"` + strings.Repeat("a", rowcodec.MaxPlain) + `"}`,
	} {
		if got, ok := d.Encode(nil, []byte(plain), rowcodec.Columns{}, &rowcodec.Buffer{}); ok || len(got) > 0 {
			t.Errorf("%s: compressed", name)
		}
	}
}

// A dictionary outlives the persons that its samples are of.
func TestDictionaryHasNothingOfOnePerson(t *testing.T) {
	t.Parallel()
	samples := rows(1000, 1)
	for i := range samples {
		if i%2 == 0 { // one person has half of the events
			samples[i].Plain = []byte(`{"email":"ada@example.com","secret_name":"` + strings.Repeat("x", 40) + `",` + string(samples[i].Plain[1:]))
			samples[i].Columns.DistinctID = []byte("ada")
		}
	}
	content := rowcodec.Train(samples)
	for _, text := range []string{"ada@", "email", "secret_name", "xxxx"} {
		if bytes.Contains(content, []byte(text)) {
			t.Errorf("the dictionary contains %q", text)
		}
	}
	if !bytes.Contains(content, []byte(`"$device_type":"Desktop",`)) {
		t.Error("the dictionary lacks what all persons have in common")
	}
	few := rows(1000, 1)
	for i := range few {
		few[i].Columns.DistinctID = fmt.Append(nil, i%(rowcodec.MinPersons-1))
	}
	if content := rowcodec.Train(few); content != nil {
		t.Errorf("%d persons have a dictionary of %d bytes", rowcodec.MinPersons-1, len(content))
	}
}

// Clients choose the samples. One of them must not take the memory of the server.
func TestTrainBoundsItsMemory(t *testing.T) {
	long := func(fill func(b *strings.Builder)) (out []rowcodec.Sample) {
		for i := range 12 {
			b := strings.Builder{}
			fmt.Fprintf(&b, `{"of %d":"`, i)
			fill(&b)
			b.WriteString(`"}`)
			out = append(out, rowcodec.Sample{Plain: []byte(b.String()), Columns: rowcodec.Columns{DistinctID: fmt.Append(nil, i)}})
		}
		return out
	}
	number := 0
	cases := map[string][]rowcodec.Sample{
		"paths":           long(func(b *strings.Builder) { b.WriteString(strings.Repeat("/", 12_000)) }),
		"long paths":      long(func(b *strings.Builder) { b.WriteString(strings.Repeat("/", 40_000)) }),
		"long properties": long(func(b *strings.Builder) { b.WriteString(strings.Repeat("x", rowcodec.MaxPlain-100)) }),
		"many properties": long(func(b *strings.Builder) {
			for b.Len() < 600_000 {
				number++
				fmt.Fprintf(b, `","%d":"`, number)
			}
		}),
	}
	for name, samples := range cases {
		samples = append(samples, rows(1000, 1)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		content := rowcodec.Train(samples)
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 100<<20 {
			t.Errorf("%s: %d MiB allocated", name, allocated>>20)
		}
		if !bytes.Contains(content, []byte(`"$device_type":"Desktop",`)) {
			t.Errorf("%s: the dictionary lacks what all persons have in common", name)
		}
	}
}

func TestDamagedRows(t *testing.T) {
	t.Parallel()
	d := trained(t, rows(1000, 1))
	s := rows(1, 3)[0]
	var b rowcodec.Buffer
	good, _ := d.Encode(nil, s.Plain, s.Columns, &b)
	bomb := append([]byte{1, 7}, 0xff, 0xff, 0xff, 0xff, 0x0f, 0)
	for name, stored := range map[string][]byte{
		"empty": {}, "plain": []byte("{}"), "format only": {1}, "no block": {1, 7}, "id 0": {1, 0, 1, 0},
		"another dictionary": append([]byte{1, 8}, good[2:]...), "huge length": bomb, "cut off": good[:len(good)-3],
	} {
		if _, err := d.Decode(nil, stored, s.Columns, &b); !errors.Is(err, rowcodec.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if plain, err := d.Decode(nil, good, s.Columns, &b); err != nil || !bytes.Equal(plain, s.Plain) {
		t.Errorf("after damaged rows: %s, %v", plain, err)
	}
	for _, content := range [][]byte{nil, {0}, {0xff}, bytes.Repeat([]byte{0xff}, 100), append([]byte{0}, make([]byte, 1<<20)...)} {
		if _, err := rowcodec.NewDictionary(1, content); !errors.Is(err, rowcodec.ErrDictionary) {
			t.Errorf("%d bytes as a dictionary: %v", len(content), err)
		}
	}
}

// References to a long column cannot make a short row large.
func TestDecodeBoundsItsMemory(t *testing.T) {
	t.Parallel()
	d := trained(t, rows(1000, 1))
	plain := []byte(strings.Repeat(`"ab"`, 100_000))
	stored, ok := d.Encode(nil, plain, rowcodec.Columns{DistinctID: []byte("ab")}, &rowcodec.Buffer{})
	if !ok {
		t.Fatal("not compressed")
	}
	long := rowcodec.Columns{DistinctID: bytes.Repeat([]byte("x"), 1000)}
	if got, err := d.Decode(nil, stored, long, &rowcodec.Buffer{}); !errors.Is(err, rowcodec.ErrDamaged) || cap(got) > 4*rowcodec.MaxPlain {
		t.Errorf("%d bytes of memory, %v", cap(got), err)
	}
}

// Long rows use the encoder of package s2.
func TestRowsOfAllLengths(t *testing.T) {
	t.Parallel()
	d := trained(t, rows(1000, 1))
	r := rand.New(rand.NewPCG(4, 4))
	var b rowcodec.Buffer
	for n := 0; n < 12_000; n += 1 + r.IntN(60) {
		var text []byte
		for len(text) < n {
			switch s := row(r); r.IntN(4) {
			case 0:
				text = append(text, s.Plain[:r.IntN(len(s.Plain))]...)
			case 1:
				text = append(text, bytes.Repeat([]byte("ab"), r.IntN(400))...)
			case 2:
				text = append(text, text[r.IntN(len(text)+1):]...)
			default:
				text = fmt.Appendf(text, "%x", r.Uint64())
			}
		}
		c := rowcodec.Columns{DistinctID: []byte("app.example.com")}
		stored, ok := d.Encode(nil, text, c, &b)
		if !ok {
			continue
		}
		if got, err := d.Decode(nil, stored, c, &b); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("%d bytes: %v", len(text), err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	d := trained(f, rows(1000, 1))
	for _, s := range rows(5, 3) {
		stored, _ := d.Encode(nil, s.Plain, s.Columns, &rowcodec.Buffer{})
		f.Add(stored, s.Columns.DistinctID, s.Columns.URL)
	}
	f.Fuzz(func(t *testing.T, stored, id, url []byte) {
		var b rowcodec.Buffer
		got, err := d.Decode(nil, stored, rowcodec.Columns{DistinctID: id, URL: url}, &b)
		if err != nil && !errors.Is(err, rowcodec.ErrDamaged) {
			t.Fatal(err)
		}
		if len(got) > rowcodec.MaxPlain+len(id)+len(url)+len(stored)*64 {
			t.Fatalf("%d bytes", len(got))
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	d := trained(f, rows(1000, 1))
	for _, s := range rows(5, 3) {
		f.Add(s.Plain, s.Columns.DistinctID, s.Columns.URL)
	}
	f.Add([]byte(`{"a":"00000000-0000-0000-0000-000000000000","b":"\"00000000-0000-0000-0000-000000000000","c":"x"}`), []byte("x"), []byte(`a"b`))
	f.Fuzz(func(t *testing.T, plain, id, url []byte) {
		var b rowcodec.Buffer
		c := rowcodec.Columns{DistinctID: id, URL: url}
		stored, ok := d.Encode(nil, plain, c, &b)
		if !ok {
			return
		}
		if got, err := d.Decode(nil, stored, c, &b); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("got %q, %v, want %q", got, err, plain)
		}
	})
}

func FuzzTrain(f *testing.F) {
	for _, s := range rows(5, 3) {
		f.Add(s.Plain)
	}
	f.Fuzz(func(t *testing.T, plain []byte) {
		samples := make([]rowcodec.Sample, 20)
		for i := range samples {
			samples[i] = rowcodec.Sample{Plain: plain, Columns: rowcodec.Columns{DistinctID: fmt.Append(nil, i)}}
		}
		if content := rowcodec.Train(samples); content != nil {
			if _, err := rowcodec.NewDictionary(1, content); err != nil || len(content) > rowcodec.MaxDictionary+1 {
				t.Fatalf("%d bytes: %v", len(content), err)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	d, list := trained(b, rows(1000, 1)), rows(1000, 2)
	var buffer rowcodec.Buffer
	var stored []byte
	i, in, out := 0, 0, 0
	b.ReportAllocs()
	for b.Loop() {
		s := &list[i%len(list)]
		stored, _ = d.Encode(stored[:0], s.Plain, s.Columns, &buffer)
		i, in, out = i+1, in+len(s.Plain), out+len(stored)
	}
	b.ReportMetric(float64(in)/float64(i), "plain-B")
	b.ReportMetric(float64(out)/float64(i), "stored-B")
}

func BenchmarkDecode(b *testing.B) {
	d, list := trained(b, rows(1000, 1)), rows(1000, 2)
	var buffer rowcodec.Buffer
	stored := make([][]byte, len(list))
	for i, s := range list {
		stored[i], _ = d.Encode(nil, s.Plain, s.Columns, &buffer)
	}
	var plain []byte
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		plain, _ = d.Decode(plain[:0], stored[i%len(list)], list[i%len(list)].Columns, &buffer)
		i++
	}
}

func BenchmarkTrain(b *testing.B) {
	list := rows(1000, 1)
	for b.Loop() {
		rowcodec.Train(list)
	}
}

// BenchmarkZstd is the alternative: zstd with the same text as its dictionary.
func BenchmarkZstd(b *testing.B) {
	content := rowcodec.Train(rows(1000, 1))
	w, err := zstd.NewWriter(nil, zstd.WithEncoderDictRaw(1, content), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		b.Fatal(err)
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(1, content), zstd.WithDecoderConcurrency(1))
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	list := rows(1000, 2)
	stored := make([][]byte, len(list))
	b.Run("encode", func(b *testing.B) {
		i, out := 0, 0
		for b.Loop() {
			k := i % len(list)
			stored[k] = w.EncodeAll(list[k].Plain, stored[k][:0])
			i, out = i+1, out+len(stored[k])
		}
		b.ReportMetric(float64(out)/float64(i), "stored-B")
	})
	b.Run("decode", func(b *testing.B) {
		var plain []byte
		i := 0
		for b.Loop() {
			if plain, err = r.DecodeAll(stored[i%len(list)], plain[:0]); err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
}
