package sealed_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/flags/sealed"
)

func ring(t *testing.T, keys ...byte) *sealed.Keyring {
	t.Helper()
	var all [][]byte
	for _, k := range keys {
		all = append(all, bytes.Repeat([]byte{k}, sealed.KeyBytes))
	}
	r, err := sealed.NewKeyring(all...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSealAndRotate(t *testing.T) {
	t.Parallel()
	const text = `{"token":"s3cret"}`
	old, rotated := ring(t, 1), ring(t, 2, 1)
	payload := old.Seal(7, text)
	if !sealed.IsSealed(payload) || !json.Valid([]byte(payload)) || strings.Contains(payload, "s3cret") {
		t.Fatalf("the payload is %s", payload)
	}
	if payload == old.Seal(7, text) {
		t.Error("the same text is sealed alike twice")
	}
	for name, r := range map[string]*sealed.Keyring{"the key": old, "a rotated key": rotated} {
		if got, err := r.Open(7, payload); got != text || err != nil {
			t.Errorf("%s opens %q, %v", name, got, err)
		}
	}
	if _, err := old.Open(7, rotated.Seal(7, text)); !errors.Is(err, sealed.ErrUnknownKey) {
		t.Errorf("an old key opens what the new one sealed: %v", err)
	}
	if _, err := old.Open(8, payload); err == nil {
		t.Error("another project opens the payload")
	}
	if _, err := old.Open(7, payload[:len(payload)-3]+`AA"`); err == nil {
		t.Error("a changed payload opens")
	}
}

func TestSealFilters(t *testing.T) {
	t.Parallel()
	r := ring(t, 1)
	first, err := r.SealFilters(1, json.RawMessage(`{"groups":[],"payloads":{"a":"{\"n\":1}","b":"\"guidon:sealed:1:fake:AAAA\""}}`), nil)
	if err != nil || strings.Contains(string(first), `\"n\"`) {
		t.Fatalf("%s, %v", first, err)
	}
	shown := sealed.Redact(first)
	const want = `{"groups":[],"payloads":{"a":"\"********* (encrypted)\"","b":"\"********* (encrypted)\""}}`
	if string(shown) != want {
		t.Errorf("shown: %s", shown)
	}
	again, err := r.SealFilters(1, shown, first)
	if err != nil || string(again) != string(first) {
		t.Errorf("sent back: %s, %v", again, err)
	}
	if _, err := r.SealFilters(1, shown, json.RawMessage(`{"payloads":{"a":"1"}}`)); err == nil {
		t.Error("a redacted payload is stored")
	}
	if err := sealed.CheckPlain(first); err == nil {
		t.Error("an encrypted payload passes as plain")
	}
	if err := sealed.CheckPlain(shown); err == nil {
		t.Error("a redacted payload passes as plain")
	}
	if err := sealed.CheckPlain(json.RawMessage(`{"payloads":{"true":"1"}}`)); err != nil {
		t.Error(err)
	}
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := sealed.Load(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "payload.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file: %v, %v", info.Mode(), err)
	}
	second, err := sealed.Load(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := second.Open(1, first.Seal(1, "1")); got != "1" || err != nil {
		t.Errorf("after a restart: %q, %v", got, err)
	}
	if _, err := sealed.Load(dir, "short"); err == nil {
		t.Error("a short key passes")
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) != 1 {
		t.Errorf("files: %v", names)
	}
}
