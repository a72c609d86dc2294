package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// ageIntro begins each file that age has encrypted.
const ageIntro = "age-encryption.org/"

// IsEncrypted reports whether the first bytes of a file are those of an encrypted
// archive.
func IsEncrypted(head []byte) bool { return strings.HasPrefix(string(head), ageIntro) }

// Reader reads an archive. It is for one goroutine.
type Reader struct {
	Header Header

	body *bodyReader
	zstd *zstd.Decoder
	tar  *tar.Reader
}

// Open reads the header of an archive. identities decrypt it if it is encrypted. The
// error is ErrNotArchive, ErrEncrypted, ErrWrongKey, a *FormatError, ErrDamaged or
// one of reading.
func Open(r io.Reader, identities []age.Identity) (*Reader, error) {
	buffered := bufio.NewReaderSize(r, readBytes)
	intro, err := buffered.Peek(len(ageIntro))
	if err != nil {
		return nil, notArchive(err)
	}
	r = buffered
	if IsEncrypted(intro) {
		if r, err = decrypt(buffered, identities); err != nil {
			return nil, err
		}
	}
	a := &Reader{body: newBodyReader(r)}
	content, err := readHeaderFrame(a.body)
	if err != nil {
		return nil, decrypted(err)
	}
	if err := json.Unmarshal(content, &a.Header); err != nil {
		return nil, damaged("its header: %w", err)
	}
	if a.Header.Format != Format {
		return nil, &FormatError{a.Header.Format, a.Header.Guidon}
	}
	a.zstd, err = zstd.NewReader(a.body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindowBytes), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	a.tar = tar.NewReader(a.zstd)
	return a, nil
}

func decrypt(r io.Reader, identities []age.Identity) (io.Reader, error) {
	if len(identities) == 0 {
		return nil, ErrEncrypted
	}
	out, err := age.Decrypt(r, identities...)
	if _, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return nil, ErrWrongKey
	}
	if err != nil {
		return nil, damaged("its encryption: %w", err)
	}
	return ageReader{out}, nil
}

// ageReader marks the errors of age.
type ageReader struct{ r io.Reader }

// Read implements io.Reader.
func (a ageReader) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = damaged("its encryption: %w", err)
	}
	return n, err
}

// decrypted returns err unchanged if it has a kind, else as damage.
func decrypted(err error) error {
	if err == nil || errors.Is(err, ErrDamaged) || errors.Is(err, ErrNotArchive) {
		return err
	}
	return damaged("%w", err)
}

// Close releases the decoder. It does not close the underlying reader.
func (a *Reader) Close() { a.zstd.Close() }

// Walk reads the whole archive and calls part for each part, in order: file is the
// name of its file, and content is valid until the call returns and may be read in
// part. The content is verified only when Walk returns without an error; the caller
// must not use it before. Errors of part are returned unchanged.
func (a *Reader) Walk(part func(file string, content []byte) error) (*Manifest, error) {
	var parts []Part
	var order partOrder
	var content bytes.Buffer
	for {
		h, err := a.tar.Next()
		if err != nil {
			return nil, a.readError(err)
		}
		limit := int64(PartBytes)
		if h.Name == ManifestName {
			limit = maxManifestBytes
		}
		if h.Typeflag != tar.TypeReg || h.Size < 0 || h.Size > limit {
			return nil, damaged("the entry %q has an unexpected type or size", h.Name)
		}
		content.Reset()
		if _, err := io.CopyN(&content, a.tar, h.Size); err != nil {
			return nil, a.readError(err)
		}
		if h.Name == ManifestName {
			return a.finish(content.Bytes(), parts)
		}
		sum := sha256.Sum256(content.Bytes())
		parts = append(parts, Part{Name: h.Name, Bytes: h.Size, SHA256: hex.EncodeToString(sum[:])})
		file, err := order.add(h.Name)
		if err != nil {
			return nil, err
		}
		if err := part(file, content.Bytes()); err != nil {
			return nil, err
		}
	}
}

// partOrder checks that the parts of a file follow each other.
type partOrder struct {
	file string
	next int
}

// add returns the file of a part.
func (o *partOrder) add(name string) (string, error) {
	i := strings.LastIndexByte(name, '.')
	if i <= 0 {
		return "", damaged("the entry %q is not a part", name)
	}
	if file := name[:i]; file != o.file {
		*o = partOrder{file: file}
	}
	if name != partName(o.file, o.next) {
		return "", damaged("the entry %q is out of order", name)
	}
	o.next++
	return o.file, nil
}

// readError returns the error of the content.
func (a *Reader) readError(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return decrypted(err)
}

// finish verifies the manifest and the footer.
func (a *Reader) finish(content []byte, parts []Part) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(content, m); err != nil {
		return nil, damaged("its manifest: %w", err)
	}
	if !slices.Equal(m.Parts, parts) {
		return nil, damaged("its parts do not fit the manifest")
	}
	if m.Format != a.Header.Format || m.Database != a.Header.Database || m.Schema != a.Header.Schema {
		return nil, damaged("its header does not fit the manifest")
	}
	if _, err := a.tar.Next(); !errors.Is(err, io.EOF) {
		return nil, damaged("entries follow the manifest")
	}
	if _, err := io.Copy(io.Discard, a.zstd); err != nil {
		return nil, decrypted(err)
	}
	if !a.body.done {
		return nil, damaged("data follows its end")
	}
	return m, nil
}
