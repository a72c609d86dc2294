package budget

import (
	"sync"

	"github.com/guidonhq/guidon/core/fault"
)

// Sizes of the buffers that are pooled. Larger ones are blocks, which are freed
// after a peak, so that one large request does not keep its memory for ever.
const (
	smallBuffer = 16 << 10
	largeBuffer = 256 << 10
)

var (
	smallBuffers = sync.Pool{New: func() any { return &Buffer{pool: 1, B: make([]byte, 0, smallBuffer)} }}
	largeBuffers = sync.Pool{New: func() any { return &Buffer{pool: 2, B: make([]byte, 0, largeBuffer)} }}
)

// Buffer is a buffer of a request that an Account pays for. Its bytes are in B.
type Buffer struct {
	B       []byte
	account *Account
	paid    int
	yielded int  // the length at the last call of Yield
	pool    int8 // 0: none
}

// ErrTooLarge is the error of a buffer at its limit, of kind TooLarge.
var ErrTooLarge = fault.New(fault.TooLarge, "request_too_large", "Request too large.")

// NewBuffer returns an empty buffer for about size bytes. size is a guess: the
// buffer grows, and a guess above 256 KiB is not trusted. It fails with
// Unavailable.
func NewBuffer(a *Account, size int) (*Buffer, error) {
	pool, n := &smallBuffers, smallBuffer
	if size > smallBuffer {
		pool, n = &largeBuffers, largeBuffer
	}
	if err := a.Take(n); err != nil {
		return nil, err
	}
	b := pool.Get().(*Buffer)
	b.account, b.paid = a, n
	return b, nil
}

// Grow makes room for n more bytes. Its length never exceeds limit: then it
// fails with ErrTooLarge, and with Unavailable if the budget is used up.
func (b *Buffer) Grow(n, limit int) error {
	need := len(b.B) + n
	if need-b.yielded >= YieldBytes {
		b.yielded = need
		b.account.Yield()
	}
	if need > limit {
		return ErrTooLarge
	}
	if need <= cap(b.B) {
		return nil
	}
	return b.move(max(need, min(2*cap(b.B), limit)))
}

// move copies the bytes into a buffer of at least size bytes.
func (b *Buffer) move(size int) error {
	next := &Buffer{account: b.account}
	if size <= largeBuffer {
		var err error
		if next, err = NewBuffer(b.account, size); err != nil {
			return err
		}
	} else {
		size = blockSize(size)
		if err := b.account.Take(size); err != nil {
			return err
		}
		next.B, next.paid = b.account.block(size), size
	}
	next.B, next.yielded = append(next.B, b.B...), b.yielded
	*b, *next = *next, *b
	next.Release()
	return nil
}

// Append appends p within limit; see Grow.
func (b *Buffer) Append(p []byte, limit int) error {
	if err := b.Grow(len(p), limit); err != nil {
		return err
	}
	b.B = append(b.B, p...)
	return nil
}

// Release returns the buffer and what was paid for it. B must not be used
// afterwards.
func (b *Buffer) Release() {
	a := b.account
	a.Return(b.paid)
	b.account, b.paid, b.yielded = nil, 0, 0
	switch b.pool {
	case 1:
		b.B = b.B[:0]
		smallBuffers.Put(b)
	case 2:
		b.B = b.B[:0]
		largeBuffers.Put(b)
	default:
		a.keepBlock(b.B)
		b.B = nil
	}
}
