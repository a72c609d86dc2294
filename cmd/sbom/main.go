// Command sbom writes the software bill of materials of a Go executable, in the JSON
// form of CycloneDX 1.6.
//
//	go run ./cmd/sbom EXECUTABLE [FILE]
//
// Without a FILE it writes to the standard output.
//
// It reads the modules that the linker has recorded in the executable, so that the list
// is that of the file and not that of a go.mod. The licences of the modules are in
// THIRD_PARTY_NOTICES.
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// bill is a document of CycloneDX.
type bill struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Ref        string     `json:"bom-ref"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

func main() {
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom EXECUTABLE [FILE]")
		os.Exit(2)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// run writes the bill of the first argument to the file of the second, or to the
// standard output.
func run(args []string) error {
	if len(args) < 2 {
		return write(os.Stdout, args[0])
	}
	var bill bytes.Buffer
	if err := write(&bill, args[0]); err != nil {
		return err
	}
	return os.WriteFile(args[1], bill.Bytes(), 0o644) // #nosec G306 -- it is published
}

// write writes the bill of the executable at path.
func write(out io.Writer, path string) error {
	b, err := read(path)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	return err
}

// read returns the bill of the executable at path.
func read(path string) (*bill, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the modules of %s: %w", path, err)
	}
	sum, err := digest(path)
	if err != nil {
		return nil, err
	}
	main := module(&info.Main)
	main.Type, main.Name, main.Hashes = "application", filepath.Base(path), []hash{{"SHA-256", sum}}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "vcs.revision", "vcs.time", "vcs.modified":
			main.Properties = append(main.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	b := &bill{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{main}}
	std := strings.TrimPrefix(info.GoVersion, "go")
	b.Components = append(b.Components, component{Ref: purl("std", std), Type: "library", Name: "std", Version: std, PURL: purl("std", std)})
	for _, m := range info.Deps {
		b.Components = append(b.Components, module(m))
	}
	needs := dependency{Ref: main.Ref}
	for _, c := range b.Components {
		needs.DependsOn = append(needs.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{needs}
	return b, nil
}

// module returns the component of a module, or of its replacement.
func module(m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	c := component{Type: "library", Name: m.Path, Version: m.Version, PURL: purl(m.Path, m.Version)}
	c.Ref = c.PURL
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}

// purl returns the package URL of a Go module.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + url.PathEscape(version)
}

// digest returns the SHA-256 of a file, in hexadecimal.
func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
