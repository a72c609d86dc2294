package archive_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/guidonhq/guidon/core/backup/archive"
)

func write(t testing.TB, files map[string][]byte, order []string, recipients ...age.Recipient) []byte {
	t.Helper()
	var out bytes.Buffer
	a, err := archive.NewWriter(&out, archive.Header{Guidon: "test", Database: "sqlite", Schema: 5, CreatedAt: time.Unix(1e9, 0).UTC()}, recipients)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range order {
		f := a.File(name)
		if _, err := f.Write(files[name]); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Finish(archive.Manifest{Steps: []int{1, 5}}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(content []byte, identities ...age.Identity) (map[string][]byte, *archive.Manifest, error) {
	a, err := archive.Open(bytes.NewReader(content), identities)
	if err != nil {
		return nil, nil, err
	}
	defer a.Close()
	files := map[string][]byte{}
	m, err := a.Walk(func(file string, part []byte) error {
		files[file] = append(files[file], part...)
		return nil
	})
	return files, m, err
}

func content() (map[string][]byte, []string) {
	large := bytes.Repeat([]byte("0123456789abcdef"), archive.PartBytes/16+3)
	return map[string][]byte{"a/large": large, "a/empty": {}, "b.with.dots": []byte("text")}, []string{"a/large", "a/empty", "b.with.dots"}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	files, order := content()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, recipients := range [][]age.Recipient{nil, {key.Recipient()}} {
		got, m, err := read(write(t, files, order, recipients...), key)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range files {
			if !bytes.Equal(got[name], want) {
				t.Errorf("%s: %d bytes, want %d", name, len(got[name]), len(want))
			}
		}
		if len(m.Parts) != 4 || m.Schema != 5 || m.Format != archive.Format || m.Bytes() != int64(len(files["a/large"])+4) {
			t.Errorf("manifest %+v", m)
		}
	}
}

// Zstandard tools read an archive that is not encrypted: they pass over its header
// and its footer.
func TestStandardDecoderReadsAnArchive(t *testing.T) {
	t.Parallel()
	files, order := content()
	d, err := zstd.NewReader(bytes.NewReader(write(t, files, order)))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	text, err := io.ReadAll(d)
	if err != nil || !bytes.Contains(text, []byte(archive.ManifestName)) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// Every changed byte, every truncation and additional data are refused.
func TestEveryChangedByteIsRefused(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"a": []byte(strings.Repeat("some text ", 50)), "b": {1, 2, 3}}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, recipients := range [][]age.Recipient{nil, {key.Recipient()}} {
		good := write(t, files, []string{"a", "b"}, recipients...)
		for at := range good {
			for _, mask := range []byte{1, 0x80, 0xff} {
				changed := bytes.Clone(good)
				changed[at] ^= mask
				if _, _, err := read(changed, key); err == nil {
					t.Fatalf("byte %d of %d changed by %#x: no error", at, len(good), mask)
				}
			}
			if _, _, err := read(good[:at], key); err == nil {
				t.Fatalf("truncated to %d: no error", at)
			}
		}
		if _, _, err := read(append(bytes.Clone(good), 0), key); err == nil {
			t.Error("one more byte: no error")
		}
		if _, _, err := read(append(bytes.Clone(good), good...), key); err == nil {
			t.Error("twice: no error")
		}
	}
}

func TestKindsOfErrors(t *testing.T) {
	t.Parallel()
	good := write(t, map[string][]byte{"a": {1}}, []string{"a"})
	for _, text := range []string{"", "x", strings.Repeat("no backup ", 100)} {
		if _, _, err := read([]byte(text)); !errors.Is(err, archive.ErrNotArchive) && !errors.Is(err, archive.ErrDamaged) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	other := bytes.Replace(good, []byte(`"format":1`), []byte(`"format":2`), 1)
	_, _, err := read(other)
	if e, ok := errors.AsType[*archive.FormatError](err); !ok || e.Format != 2 {
		t.Errorf("another format: %v", err)
	}
	changed := bytes.Clone(good)
	changed[len(changed)-1] ^= 1
	if _, _, err := read(changed); !errors.Is(err, archive.ErrDamaged) {
		t.Errorf("the last byte: %v", err)
	}
}

// A reader of anything ends with an error or the archive that was written.
func FuzzOpen(f *testing.F) {
	files := map[string][]byte{"a": []byte("some text"), "b": {1, 2, 3}}
	good := write(f, files, []string{"a", "b"})
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte("age-encryption.org/v1\n-> X25519 x\n"))
	key, err := age.GenerateX25519Identity()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(write(f, files, []string{"a"}, key.Recipient()))
	f.Fuzz(func(_ *testing.T, content []byte) { _, _, _ = read(content, key) })
}
