package backup

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"filippo.io/age"

	"github.com/guidonhq/guidon/core/backup/archive"
	"github.com/guidonhq/guidon/core/backup/place"
)

// List returns the backups in a place, the newest first. Files with other names than
// those of backups are left out.
func List(ctx context.Context, in place.Place) ([]place.Entry, error) {
	list, err := in.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the backups in %s: %w", in.Path(""), err)
	}
	out := []place.Entry{}
	for _, e := range list {
		if at, ok := place.IsGenerated(e.Name); ok {
			e.At = at // a copy of the file has another time
		}
		if strings.HasSuffix(e.Name, place.Extension) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b place.Entry) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.Name, a.Name)) })
	return out, nil
}

// Newest returns the name of the newest backup in a place. The error of a place
// without backups satisfies errors.Is(err, fs.ErrNotExist).
func Newest(ctx context.Context, in place.Place) (string, error) {
	list, err := List(ctx, in)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("there is no backup in %s: %w", in.Path(""), fs.ErrNotExist)
	}
	if err != nil {
		return "", err
	}
	return list[0].Name, nil
}

// Content is a verified backup.
type Content struct {
	Path      string
	Bytes     int64 // of the archive
	Encrypted bool
	Manifest  *archive.Manifest
	Files     []FileContent // in their order in the archive
}

// FileContent is a file of a backup.
type FileContent struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"` // before compression
}

// Check reads a whole backup, verifies its checksums and returns its content. The
// error satisfies errors.Is for the kinds of core/backup/archive.
func Check(ctx context.Context, from place.Place, name string, identities []age.Identity, progress func(done, total int64)) (*Content, error) {
	counted := &countingPlace{Place: from}
	out := &Content{Path: from.Path(name)}
	var err error
	if out.Manifest, err = Verify(ctx, counted, name, identities, progress); err != nil {
		return nil, err
	}
	out.Bytes, out.Encrypted = counted.n, archive.IsEncrypted(counted.head)
	for _, p := range out.Manifest.Parts {
		file := strings.TrimSuffix(p.Name, path.Ext(p.Name))
		if n := len(out.Files); n == 0 || out.Files[n-1].Name != file {
			out.Files = append(out.Files, FileContent{Name: file})
		}
		out.Files[len(out.Files)-1].Bytes += p.Bytes
	}
	return out, nil
}

// countingPlace counts the bytes that are read, and keeps the first of them.
type countingPlace struct {
	place.Place
	n    int64
	head []byte
}

// Open implements place.Place.
func (c *countingPlace) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	r, err := c.Place.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &countingReader{r, c}, nil
}

type countingReader struct {
	io.ReadCloser
	c *countingPlace
}

const headBytes = 64

// Read implements io.Reader.
func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.c.n += int64(n)
	if missing := headBytes - len(r.c.head); missing > 0 {
		r.c.head = append(r.c.head, p[:min(n, missing)]...)
	}
	return n, err
}
