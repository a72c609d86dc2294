package body

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/guidonhq/guidon/core/web/budget"
)

// capped collects decompressed bytes. It fails at the first byte past the limit,
// and when the budget is used up, so that a decompression bomb never uses more
// memory.
type capped struct {
	out   *budget.Buffer
	limit int
	err   error // of the buffer
}

func (c *capped) Write(p []byte) (int, error) {
	if c.err = c.out.Append(p, c.limit); c.err != nil {
		return 0, c.err
	}
	return len(p), nil
}

// inflater decompresses packed to w.
type inflater struct {
	run   func(w io.Writer, packed []byte) error
	state func(packed []byte) int // the memory that run uses beside w
}

var (
	gzipInflater   = &inflater{gunzip, flateState}
	zlibInflater   = &inflater{unzlib, flateState}
	brotliInflater = &inflater{unbrotli, brotliState}
	zstdInflater   = &inflater{unzstd, zstdState}
)

// inflaterOf returns the inflater of a content encoding that only headers name, or
// nil. gzip is not one of them: it is recognized by its first bytes.
func inflaterOf(encoding string) *inflater {
	if len(encoding) > len("deflate") {
		return nil
	}
	switch strings.ToLower(encoding) {
	case "deflate":
		return zlibInflater
	case "br":
		return brotliInflater
	case "zstd":
		return zstdInflater
	}
	return nil
}

func (u *unwrapper) inflate(packed []byte, f *inflater) ([]byte, error) {
	state := f.state(packed)
	if err := u.decoder.memory.Take(state); err != nil {
		return nil, err
	}
	defer u.decoder.memory.Return(state)
	out, err := u.decoder.buffer(guessInflated(packed))
	if err != nil {
		return nil, err
	}
	c := capped{out: out, limit: u.limits.InflatedBytes}
	if err = f.run(&c, packed); c.err != nil {
		return nil, c.err
	}
	if err != nil {
		return nil, malformed("the compressed data is damaged")
	}
	return out.B, nil
}

// guessInflated returns the size of the first buffer: the size at the end of gzip
// data if it is plausible, else four times the compressed size.
func guessInflated(packed []byte) int {
	n := len(packed)
	if isGzip(packed) && n > 8 {
		if said := int(binary.LittleEndian.Uint32(packed[n-4:])); said < 1100*n {
			return said
		}
	}
	return 4 * n
}

var gzips sync.Pool

type gzipReader struct {
	gzip.Reader
	src bytes.Reader
}

func gunzip(w io.Writer, packed []byte) error {
	r, ok := gzips.Get().(*gzipReader)
	if !ok {
		r = new(gzipReader)
	}
	defer gzips.Put(r)
	r.src.Reset(packed)
	defer r.src.Reset(nil)
	if err := r.Reset(&r.src); err != nil {
		return err
	}
	_, err := r.WriteTo(w)
	return err
}

func unzlib(w io.Writer, packed []byte) error {
	r, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return err
}

// flateState is the window and the tables of an inflater of gzip or deflate.
func flateState([]byte) int { return 48 << 10 }

// unbrotli uses a new reader: one in a pool would keep its window.
func unbrotli(w io.Writer, packed []byte) error {
	_, err := io.Copy(w, brotli.NewReader(bytes.NewReader(packed)))
	return err
}

// brotliState reads the size of the window from the first byte (RFC 7932, 9.1).
func brotliState(packed []byte) int {
	if len(packed) == 0 {
		return 0
	}
	c, bits := packed[0], 17
	switch n, m := c>>1&7, c>>4&7; {
	case c&1 == 0:
		bits = 16
	case n != 0:
		bits = 17 + int(n)
	case m > 1:
		bits = 8 + int(m)
	}
	return 256<<10 + 1<<bits
}

// Bounds of the window of zstd.
const (
	minWindow = 1 << 20
	maxWindow = 8 << 20
)

// zstdWindow returns the window that the first frame needs. Further frames may
// not need a larger one.
func zstdWindow(packed []byte) int {
	var h zstd.Header
	if err := h.Decode(packed); err != nil {
		return minWindow
	}
	return int(min(max(h.WindowSize, h.FrameContentSize, minWindow), maxWindow))
}

func zstdState(packed []byte) int { return 256<<10 + 2*zstdWindow(packed) }

// unzstd uses one goroutine and small windows: a header cannot make it allocate
// much memory.
func unzstd(w io.Writer, packed []byte) error {
	r, err := zstd.NewReader(bytes.NewReader(packed),
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(uint64(zstdWindow(packed))))
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = r.WriteTo(w)
	return err
}
