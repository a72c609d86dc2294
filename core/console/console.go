// Package console serves the console: the pages on which people see and steer the
// server in a browser.
//
// The pages are built from the folder console/ of the repository into dist/, which
// Git ignores and Go embeds. A server that was built without them answers with how to
// get them. Each file is embedded compressed, with Brotli and with gzip, and sent as it
// is; a client that takes neither gets it decompressed.
//
// The document is served at / for clients that ask for HTML, and at every path below
// /console/, where the scripts of the document choose the view by the path. Files with a
// hash of their content in the name are below /console/assets/ and are cached for ever.
// Everything else of the server keeps its paths: the console reserves one name.
//
// The package does not depend on flags or events, and serves no data: the pages call the
// management API with the rights of their user.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Config holds the settings of the console.
type Config struct {
	// Enabled serves the console at / and below /console/.
	Enabled bool `koanf:"enabled"`
}

// DefaultConfig serves the console.
func DefaultConfig() Config { return Config{Enabled: true} }

// Validate implements the check of a section; every value is valid.
func (Config) Validate() error { return nil }

//go:embed all:dist
var embedded embed.FS

// document is the name of the page of all views.
const document = "index.html"

// Assets are the files of a built console by name. They are read-only.
type Assets struct{ files map[string]*file }

// file is a file in its encodings.
type file struct {
	contentType  string
	etag         string
	gzip, brotli []byte
}

// Built returns the embedded console. It has no document if the server was built
// without it.
func Built() (*Assets, error) {
	dist, err := fs.Sub(embedded, "dist")
	if err != nil {
		return nil, err
	}
	return Load(dist)
}

// Load reads a folder of files NAME.gz and NAME.br. It ignores other files, and fails for
// a name that does not have both or has an unknown extension.
func Load(folder fs.FS) (*Assets, error) {
	a := &Assets{files: map[string]*file{}}
	err := fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		plain, encoded := strings.CutSuffix(name, ".gz")
		if err != nil || d.IsDir() || !encoded {
			return err
		}
		f := &file{contentType: mediaTypes[path.Ext(plain)]}
		if f.contentType == "" {
			return fmt.Errorf("console: %s has an extension without a media type", plain)
		}
		if f.gzip, err = fs.ReadFile(folder, name); err != nil {
			return err
		}
		if f.brotli, err = fs.ReadFile(folder, plain+".br"); err != nil {
			return fmt.Errorf("console: %s has no Brotli encoding: %w", plain, err)
		}
		sum := sha256.Sum256(f.gzip)
		f.etag = hex.EncodeToString(sum[:8])
		a.files[plain] = f
		return nil
	})
	return a, err
}

// Present reports whether the assets have a document.
func (a *Assets) Present() bool { return a.files[document] != nil }

// mediaTypes are the media types of the files of a console by extension. The list of the
// operating system would differ from machine to machine.
var mediaTypes = map[string]string{
	".html":  "text/html; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".json":  "application/json",
	".txt":   "text/plain; charset=utf-8",
	".svg":   "image/svg+xml",
	".png":   "image/png",
	".woff2": "font/woff2",
}

// encode returns the content for an Accept-Encoding header, and its encoding: the
// smallest that the client takes, empty for none.
func (f *file) encode(accept string) (content []byte, encoding string, err error) {
	switch {
	case accepts(accept, "br"):
		return f.brotli, "br", nil
	case accepts(accept, "gzip"):
		return f.gzip, "gzip", nil
	}
	r, err := gzip.NewReader(bytes.NewReader(f.gzip))
	if err != nil {
		return nil, "", err
	}
	content, err = io.ReadAll(r)
	return content, "", err
}

// accepts reports whether a header with a list of names, each with an optional weight,
// has the name with a weight above zero.
func accepts(header, name string) bool {
	for part := range strings.SplitSeq(header, ",") {
		found, params, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(found), name) {
			continue
		}
		weight, ok := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		return !ok || strings.Trim(weight, "0.") != ""
	}
	return false
}
