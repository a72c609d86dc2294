package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
)

// Magic numbers of skippable Zstandard frames, which decoders pass over.
const (
	headerMagic = 0x184D2A5A
	footerMagic = 0x184D2A5B
)

const frameHeaderBytes = 8

// footerPrefix and the SHA-256 in hexadecimal are the content of the footer.
const footerPrefix = "guidon-backup sha256 "

const footerBytes = frameHeaderBytes + len(footerPrefix) + 2*sha256.Size

// frame returns a skippable frame.
func frame(magic uint32, content []byte) []byte {
	out := binary.LittleEndian.AppendUint32(nil, magic)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(content)))
	return append(out, content...)
}

func footer(sum []byte) []byte {
	return frame(footerMagic, append([]byte(footerPrefix), hex.EncodeToString(sum)...))
}

// readHeaderFrame reads the first frame of an archive.
func readHeaderFrame(r io.Reader) ([]byte, error) {
	var head [frameHeaderBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, notArchive(err)
	}
	size := binary.LittleEndian.Uint32(head[4:])
	if binary.LittleEndian.Uint32(head[:]) != headerMagic || size > maxHeaderBytes {
		return nil, ErrNotArchive
	}
	content := make([]byte, size)
	if _, err := io.ReadFull(r, content); err != nil {
		return nil, notArchive(err)
	}
	return content, nil
}

// notArchive returns ErrNotArchive for the end of the input, else the error.
func notArchive(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrNotArchive
	}
	return err
}

// hashWriter hashes what it writes.
type hashWriter struct {
	w   io.Writer
	sum hash.Hash
}

// Write writes p.
func (h *hashWriter) Write(p []byte) (int, error) {
	n, err := h.w.Write(p)
	h.sum.Write(p[:n])
	return n, err
}

// bodyReader returns everything but the footer, which it verifies at the end.
type bodyReader struct {
	r    io.Reader
	sum  hash.Hash
	buf  []byte // read and not returned; the last footerBytes of it may be the footer
	err  error  // of r
	done bool   // the footer is verified
}

func newBodyReader(r io.Reader) *bodyReader { return &bodyReader{r: r, sum: sha256.New()} }

// Read implements io.Reader. It returns io.EOF only if the footer fits.
func (b *bodyReader) Read(p []byte) (int, error) {
	for len(b.buf) <= footerBytes && b.err == nil {
		b.fill()
	}
	if n := min(len(b.buf)-footerBytes, len(p)); n > 0 {
		copy(p, b.buf[:n])
		b.sum.Write(b.buf[:n])
		b.buf = b.buf[n:]
		return n, nil
	}
	if len(p) == 0 {
		return 0, nil
	}
	if !errors.Is(b.err, io.EOF) {
		return 0, b.err
	}
	if !bytes.Equal(b.buf, footer(b.sum.Sum(nil))) {
		return 0, damaged("the checksum at its end does not fit")
	}
	b.done = true
	return 0, io.EOF
}

const readBytes = 128 << 10

func (b *bodyReader) fill() {
	next := make([]byte, len(b.buf), len(b.buf)+readBytes)
	copy(next, b.buf)
	n, err := b.r.Read(next[len(next):cap(next)])
	b.buf, b.err = next[:len(next)+n], err
}
