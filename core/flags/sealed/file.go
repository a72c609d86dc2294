package sealed

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// fileName is the name of the file with the keys of a server whose configuration
// names none.
const fileName = "payload.key"

// Load returns a keyring of the keys in configured, as ParseKeys reads them. Without
// any it reads the file payload.key in dir, and creates it with a random key and
// mode 0600 if there is none.
func Load(dir, configured string) (*Keyring, error) { return load(dir, configured, true) }

// LoadExisting is Load without creating a file: it fails if there is no key.
func LoadExisting(dir, configured string) (*Keyring, error) { return load(dir, configured, false) }

func load(dir, configured string, mayCreate bool) (*Keyring, error) {
	keys, err := ParseKeys(configured)
	if err == nil && len(keys) == 0 {
		keys, err = fileKeys(filepath.Join(dir, fileName), mayCreate)
	}
	if err != nil {
		return nil, err
	}
	return NewKeyring(keys...)
}

func fileKeys(path string, mayCreate bool) ([][]byte, error) {
	text, err := os.ReadFile(path)
	if mayCreate && errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, fmt.Errorf("create the key for encrypted payloads: %w", err)
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key for encrypted payloads: %w", err)
	}
	keys, err := ParseKeys(string(text))
	if err == nil && len(keys) == 0 {
		err = errors.New("the file is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("read the key for encrypted payloads in %s: %w", path, err)
	}
	return keys, nil
}

// create writes a new key. The link keeps the file of a process that was faster.
func create(path string) error {
	var raw [KeyBytes]byte
	_, _ = rand.Read(raw[:]) // never returns an error
	f, err := os.CreateTemp(filepath.Dir(path), fileName+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(raw[:]) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
