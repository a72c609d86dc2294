package archive

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// Writer writes an archive. It is for one goroutine. After an error the archive is
// useless.
type Writer struct {
	header  Header
	out     *hashWriter
	encrypt io.WriteCloser // nil without recipients
	zstd    *zstd.Encoder
	tar     *tar.Writer
	parts   []Part
	buf     []byte // of the part that is written; files use it one after the other
}

// NewWriter begins an archive on w, encrypted for recipients if there are any. It
// uses one goroutine and compresses at the fastest level.
func NewWriter(w io.Writer, h Header, recipients []age.Recipient) (*Writer, error) {
	h.Format = Format
	a := &Writer{header: h}
	if len(recipients) > 0 {
		encrypt, err := age.Encrypt(w, recipients...)
		if err != nil {
			return nil, fmt.Errorf("encrypt the backup: %w", err)
		}
		a.encrypt, w = encrypt, encrypt
	}
	a.out = &hashWriter{w: w, sum: sha256.New()}
	content, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if _, err := a.out.Write(frame(headerMagic, content)); err != nil {
		return nil, err
	}
	a.zstd, err = zstd.NewWriter(a.out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	a.tar = tar.NewWriter(a.zstd)
	return a, nil
}

// File begins a file of the backup. The file ends with Close; then the next one can
// begin.
func (a *Writer) File(name string) io.WriteCloser {
	if a.buf == nil {
		a.buf = make([]byte, 0, PartBytes)
	}
	return &fileWriter{a: a, name: name, buf: a.buf[:0]}
}

// Finish writes the manifest with the parts that were written, and ends the archive.
// It does not close the underlying writer.
func (a *Writer) Finish(m Manifest) (*Manifest, error) {
	m.Header, m.Parts = a.header, a.parts
	content, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if err := a.entry(ManifestName, content); err != nil {
		return nil, err
	}
	if err := errors.Join(a.tar.Close(), a.zstd.Close()); err != nil {
		return nil, err
	}
	if _, err := a.out.w.Write(footer(a.out.sum.Sum(nil))); err != nil {
		return nil, err
	}
	if a.encrypt != nil {
		err = a.encrypt.Close()
	}
	return &m, err
}

func (a *Writer) entry(name string, content []byte) error {
	h := tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), ModTime: a.header.CreatedAt, Format: tar.FormatPAX}
	if err := a.tar.WriteHeader(&h); err != nil {
		return err
	}
	_, err := a.tar.Write(content)
	return err
}

// fileWriter splits a file into parts.
type fileWriter struct {
	a     *Writer
	name  string
	buf   []byte
	parts int
}

// Write adds p to the file.
func (f *fileWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), PartBytes-len(f.buf))]
		f.buf, p, n = append(f.buf, part...), p[len(part):], n+len(part)
		if len(f.buf) == PartBytes {
			if err := f.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (f *fileWriter) flush() error {
	name := partName(f.name, f.parts)
	sum := sha256.Sum256(f.buf)
	f.a.parts = append(f.a.parts, Part{Name: name, Bytes: int64(len(f.buf)), SHA256: hex.EncodeToString(sum[:])})
	err := f.a.entry(name, f.buf)
	f.parts++
	f.buf = f.buf[:0]
	return err
}

// Close ends the file. An empty file has one empty part.
func (f *fileWriter) Close() error {
	if len(f.buf) > 0 || f.parts == 0 {
		return f.flush()
	}
	return nil
}

func partName(file string, n int) string { return fmt.Sprintf("%s.%06d", file, n) }
