package install

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// Bounds of a package. posthog-js has about 40 scripts with 10 MB in total.
const (
	maxFiles      = 500
	maxFileBytes  = 8 << 20
	maxTotalBytes = 96 << 20
	maxEntries    = 20_000
)

// unpack writes the files of a package that are kept into dir, and returns their
// number and size. Links and other kinds of entries are left out.
func unpack(archive, dir string) (files int, size int64, err error) {
	in, err := os.Open(archive)
	if err != nil {
		return 0, 0, fmt.Errorf("open the package: %w", err)
	}
	defer func() { _ = in.Close() }()
	zipped, err := gzip.NewReader(in)
	if err != nil {
		return 0, 0, fmt.Errorf("read the package: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, 0, fmt.Errorf("open the directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	if err := root.Mkdir("dist", 0o755); err != nil {
		return 0, 0, fmt.Errorf("create dist: %w", err)
	}
	// The limit covers skipped entries, such as source maps, too.
	entries := tar.NewReader(io.LimitReader(zipped, 8*maxTotalBytes))
	for n := 0; ; n++ {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return files, size, nil
		}
		if err != nil {
			return files, size, fmt.Errorf("read the package: %w", err)
		}
		name := keptAs(h)
		if name == "" && n < maxEntries {
			continue
		}
		if files++; files > maxFiles || n >= maxEntries || h.Size > maxFileBytes || size+h.Size > maxTotalBytes {
			return files, size, errors.New("the package is larger than a browser library can be")
		}
		if err := writeFile(root, name, entries, h.Size); err != nil {
			return files, size, err
		}
		size += h.Size
	}
}

// keptAs returns the name below the directory of the version, "" for an entry
// that is not kept.
func keptAs(h *tar.Header) string {
	if h.Typeflag != tar.TypeReg {
		return ""
	}
	_, name, _ := strings.Cut(path.Clean(h.Name), "/") // without package/
	switch {
	case name == "package.json", name == "LICENSE":
		return name
	case strings.HasSuffix(name, ".js") && path.Dir(name) == "dist":
		return name
	}
	return ""
}

func writeFile(root *os.Root, name string, from io.Reader, size int64) error {
	out, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	_, err = io.CopyN(out, from, size)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
