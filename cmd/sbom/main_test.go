package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBillInFile checks that the second argument is the file of the bill.
func TestBillInFile(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bill.json")
	if err := run([]string{self, path}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !json.Valid(text) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestBill reads the bill of the test executable.
func TestBill(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := write(&out, self); err != nil {
		t.Fatal(err)
	}
	var b bill
	if err := json.Unmarshal(out.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || len(b.Metadata.Component.Hashes) != 1 || len(b.Metadata.Component.Hashes[0].Content) != 64 {
		t.Errorf("bill %s", out.String())
	}
	if c := b.Components[0]; c.Name != "std" || !strings.HasPrefix(c.PURL, "pkg:golang/std@1.") {
		t.Errorf("the first component is %+v", c)
	}
	refs := map[string]bool{}
	for _, c := range b.Components {
		if refs[c.Ref] {
			t.Errorf("%s twice", c.Ref)
		}
		refs[c.Ref] = true
	}
	if got := len(b.Dependencies[0].DependsOn); got != len(b.Components) {
		t.Errorf("%d dependencies of %d components", got, len(b.Components))
	}
}

func TestNoExecutable(t *testing.T) {
	t.Parallel()
	if err := write(&bytes.Buffer{}, "main.go"); err == nil {
		t.Error("a source file has a bill")
	}
}
