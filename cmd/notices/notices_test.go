package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNoticesAreCurrent(t *testing.T) {
	t.Parallel()
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../THIRD_PARTY_NOTICES")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("THIRD_PARTY_NOTICES is stale: run make generate and commit it")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{root, os.Getenv("HOME") + "/go", "pkg/mod", "proxy."} {
		if bytes.Contains(got, []byte(path)) {
			t.Errorf("THIRD_PARTY_NOTICES contains %s", path)
		}
	}
}

const mit = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions: The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`

const gpl = `This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.`

func TestLicencesAreChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"allowed":   {mit, ""},
		"forbidden": {gpl, "is not allowed"},
		"both":      {mit + "\n\n" + gpl, "is not allowed"},
		"unknown":   {"Ask us.", "no licence is recognized"},
	} {
		file := filepath.Join(t.TempDir(), "LICENSE")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := newComponent("example.test/"+name, "v1.0.0", []string{file})
		if c.want == "" && (err != nil || got.licences[0] != "MIT") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, %v; want %q", name, got.licences, err, c.want)
		}
	}
}

func TestLicenceFilesOfPackagesAndAbove(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"LICENSE", "README", "a/b/COPYING.txt", "a/license.go", "other/LICENSE"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := licenceFiles(filepath.Join(root, "a", "b"), root)
	if err != nil || len(got) != 2 || got[0] != filepath.Join(root, "a/b/COPYING.txt") || got[1] != filepath.Join(root, "LICENSE") {
		t.Errorf("got %v, %v", got, err)
	}
}
