package body

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"
)

// maxPooledBytes is the maximum size of a buffer in the pool; larger ones are
// freed.
const maxPooledBytes = 1 << 20

// block is a buffer that belongs to a request until its answer is written.
type block struct{ b []byte }

var blocks = sync.Pool{New: func() any { return new(block) }}

// buffer returns an empty buffer with a capacity of about size bytes.
func (d *Decoder) buffer(size int) *block {
	b := blocks.Get().(*block)
	if size = min(size, maxPooledBytes); cap(b.b) < size {
		b.b = make([]byte, 0, size)
	}
	b.b = b.b[:0]
	d.blocks = append(d.blocks, b)
	return b
}

func (b *block) release() {
	if cap(b.b) > maxPooledBytes {
		b.b = nil
	}
	blocks.Put(b)
}

// errTooMuch ends a decompression at its limit.
var errTooMuch = errors.New("inflates past the limit")

// capped collects decompressed bytes. It fails at the first byte past the limit,
// so that a decompression bomb never uses more memory.
type capped struct {
	out  *block
	left int
}

func (c *capped) Write(p []byte) (int, error) {
	if len(p) > c.left {
		return 0, errTooMuch
	}
	c.left -= len(p)
	c.out.b = append(c.out.b, p...)
	return len(p), nil
}

// inflater decompresses packed to w.
type inflater func(w io.Writer, packed []byte) error

// inflaterOf returns the inflater of a content encoding that only headers name, or
// nil. gzip is not one of them: it is recognized by its first bytes.
func inflaterOf(encoding string) inflater {
	if len(encoding) > len("deflate") {
		return nil
	}
	switch strings.ToLower(encoding) {
	case "deflate":
		return unzlib
	case "br":
		return unbrotli
	case "zstd":
		return unzstd
	}
	return nil
}

func (u *unwrapper) inflate(packed []byte, f inflater) ([]byte, error) {
	c := capped{out: u.decoder.buffer(guessInflated(packed)), left: u.limits.InflatedBytes}
	err := f(&c, packed)
	if errors.Is(err, errTooMuch) {
		return nil, tooLarge()
	}
	if err != nil {
		return nil, malformed("the compressed data is damaged")
	}
	return c.out.b, nil
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

func unbrotli(w io.Writer, packed []byte) error {
	_, err := fasthttp.WriteUnbrotli(w, packed)
	return err
}

// unzstd uses one goroutine and small windows: a header cannot make it allocate
// much memory.
func unzstd(w io.Writer, packed []byte) error {
	r, err := zstd.NewReader(bytes.NewReader(packed),
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = r.WriteTo(w)
	return err
}
