package budget

import (
	"errors"
	"io"
)

// Bounds of one read.
const (
	minStep = 16 << 10
	maxStep = 256 << 10
)

// ReadBody reads r to its end, within limit. n is the announced number of bytes,
// negative if it is unknown. It fails with ErrTooLarge, with Unavailable, with
// io.ErrUnexpectedEOF if r ends before n bytes, and with the errors of r.
func (b *Buffer) ReadBody(r io.Reader, n, limit int) error {
	for {
		if err := b.growForRead(n, limit); err != nil {
			return err
		}
		got, err := r.Read(b.B[len(b.B):min(cap(b.B), len(b.B)+maxStep)])
		b.B = b.B[:len(b.B)+got]
		switch {
		case len(b.B) > limit:
			return ErrTooLarge
		case errors.Is(err, io.EOF) && len(b.B) < n:
			return io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		b.account.Yield()
	}
}

// growForRead makes room for a read. The size of the buffer doubles, but does
// not exceed a known size of the body.
func (b *Buffer) growForRead(n, limit int) error {
	if len(b.B) < cap(b.B) {
		return nil
	}
	size := min(max(2*cap(b.B), minStep), limit+1)
	if n > 0 {
		size = min(size, n)
	}
	return b.move(max(size, len(b.B)+1))
}
