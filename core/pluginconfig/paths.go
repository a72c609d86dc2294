package pluginconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/core/host/settings"
)

// The formats of a JSON Schema (tag format of the SDK) whose values name local files.
const (
	pathFormat        = "path"
	postgresURLFormat = "postgres-url"
)

// postgresFiles are the parameters of a URL of PostgreSQL that name local files, see
// https://pkg.go.dev/github.com/jackc/pgx/v5/pgconn#ParseConfig.
var postgresFiles = []string{"passfile", "servicefile", "sslcert", "sslkey", "sslrootcert"}

var errOutside = errors.New("outside of the directory")

// filesDir is the directory that has the local files of instances of the API.
type filesDir string

func newFilesDir(dataDir string) filesDir {
	dir := filepath.Join(dataDir, "plugin-files")
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	return filesDir(dir)
}

// resolve returns a config with absolute paths in place of those in the directory, which it
// makes if a path is in it. Another path is refused with its field. secrets are the values of
// the secrets of the config; a path in one is only checked, and has to be absolute.
func (d filesDir) resolve(config, schema map[string]any, secrets map[string]string) (map[string]any, error) {
	out, err := walk(config, schema, "", false, func(l leaf) (any, error) {
		text, _ := l.value.(string)
		value, secret := secrets[l.at]
		if secret {
			text = value
		}
		switch {
		case text == "", text == settings.StoredSecret: // without a key; the host says so
			return l.value, nil
		case l.format == postgresURLFormat:
			return l.value, d.checkURL(l.at, text)
		case l.format != pathFormat:
			return l.value, nil
		}
		path, err := d.path(text)
		switch {
		case err != nil:
			return nil, d.refuse(l.at, "This path", err)
		case !secret:
			return path, nil
		case !filepath.IsAbs(text):
			return nil, d.refuse(l.at, "This path", errOutside)
		}
		return l.value, nil
	})
	if err != nil {
		return nil, err
	}
	return out.(map[string]any), nil
}

// checkURL refuses a URL of PostgreSQL with parameters that name files outside of the
// directory, and the form without a scheme, which can name files too.
func (d filesDir) checkURL(at, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || !strings.HasPrefix(text, u.Scheme+"://") {
		return refuse(at, "invalid_config", "Must be a URL: postgres://user:password@host:5432/name.")
	}
	query := u.Query()
	for _, name := range postgresFiles {
		for _, value := range query[name] {
			if name == "sslrootcert" && value == "system" { // the certificates of the system
				continue
			}
			_, err := d.path(value)
			if err == nil && !filepath.IsAbs(value) {
				err = errOutside
			}
			if err != nil {
				return d.refuse(at, "The absolute path "+name, err)
			}
		}
	}
	return nil
}

// refuse returns the error of a path. It is the same for all paths outside of the directory,
// so that it does not tell which files exist.
func (d filesDir) refuse(at, what string, err error) error {
	if !errors.Is(err, errOutside) {
		return err
	}
	return refuse(at, "path_not_allowed", fmt.Sprintf("%s must be in %s, without links that lead out of it. Other files are for instances of the config file.", what, d))
}

// path returns the path of a file in the directory without symbolic links, or errOutside. A
// relative path is relative to the directory.
func (d filesDir) path(path string) (string, error) {
	if strings.ContainsRune(path, 0) || slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "..") {
		return "", errOutside
	}
	if err := os.MkdirAll(string(d), 0o750); err != nil {
		return "", fmt.Errorf("make the directory for files of plugins: %w", err)
	}
	root, err := filepath.EvalSymlinks(string(d))
	if err != nil {
		return "", fmt.Errorf("find the directory for files of plugins: %w", err)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	found, err := followLinks(path)
	if err != nil {
		return "", errOutside
	}
	if below, err := filepath.Rel(root, found); err != nil || !filepath.IsLocal(below) {
		return "", errOutside
	}
	return found, nil
}

// followLinks returns a path without symbolic links. Its end need not exist; a link to what
// does not exist is an error.
func followLinks(path string) (string, error) {
	rest := ""
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		found, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(found, rest), nil
		}
		if _, there := os.Lstat(at); there == nil || !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}
