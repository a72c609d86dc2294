package wire

import "github.com/klauspost/compress/zstd"

var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
)

// Pack compresses rows.
func Pack(plain []byte) []byte { return encoder.EncodeAll(plain, nil) }

// Unpack returns what Pack has compressed.
func Unpack(content []byte) ([]byte, error) { return decoder.DecodeAll(content, nil) }
