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

// maxPooledBytes is the largest buffer that waits for the next request; larger
// ones go back to the system.
const maxPooledBytes = 1 << 20

// block is a buffer that belongs to a request until its answer is written.
type block struct{ b []byte }

var blocks = sync.Pool{New: func() any { return new(block) }}

// block returns an empty buffer with room for about size bytes.
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

// errTooMuch ends an inflation that has reached its limit.
var errTooMuch = errors.New("inflates past the limit")

// capped is where inflated bytes go: it refuses the byte after the last one
// that is allowed, so a bomb never grows further than the limit.
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

// inflater writes to w what packed stands for.
type inflater func(w io.Writer, packed []byte) error

// inflaterOf returns what undoes a content encoding that only headers name,
// or nil. gzip is not among them: it is recognised by its first bytes.
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

// guessInflated is a first buffer size: what gzip says at its end, when that
// can be true, else four times as much.
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

// unzstd uses one goroutine and small windows: a header must not be able to
// ask for much memory.
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
