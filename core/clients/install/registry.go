package install

import (
	"bufio"
	"context"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/clients/scripts"
)

const (
	maxMetadataBytes = 4 << 20
	maxArchiveBytes  = 64 << 20
)

var errNoRegistry = errors.New("npm is not in PATH and its configuration names no registry: install npm, or set registry in ~/.npmrc")

// Registry is an npm registry. The zero value is that of the npm configuration.
type Registry struct {
	// URL starts with https://.
	URL string
	// Client makes the requests; nil is a client with a timeout of five minutes.
	Client *http.Client
}

// download stores a version of the package in dir and checks its integrity.
func (r Registry) download(ctx context.Context, dir, version string) (archive, full string, err error) {
	base := r.URL
	if base == "" {
		base = configuredRegistry()
	}
	if base == "" {
		return "", "", errNoRegistry
	}
	var meta struct {
		Name, Version string
		Dist          struct{ Tarball, Integrity string }
	}
	raw, err := r.get(ctx, strings.TrimRight(base, "/")+"/"+scripts.Package+"/"+version, maxMetadataBytes)
	if err != nil {
		return "", "", err
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return "", "", fmt.Errorf("read the answer of the registry: %w", err)
	}
	if meta.Name != scripts.Package {
		return "", "", fmt.Errorf("the registry returned the package %q", meta.Name)
	}
	content, err := r.get(ctx, meta.Dist.Tarball, maxArchiveBytes)
	if err != nil {
		return "", "", err
	}
	if err := checkIntegrity(content, meta.Dist.Integrity); err != nil {
		return "", "", err
	}
	archive = filepath.Join(dir, "package.tgz")
	if err := os.WriteFile(archive, content, 0o600); err != nil {
		return "", "", fmt.Errorf("write the package: %w", err)
	}
	return archive, meta.Version, nil
}

// get returns the body of an https URL of at most limit bytes.
func (r Registry) get(ctx context.Context, address string, limit int64) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is not an https address", address)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", address, err)
	}
	client := r.Client
	if client == nil {
		client = &http.Client{Timeout: 5 * time.Minute}
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", address, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("request %s: status %d", address, res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", address, err)
	}
	return body, nil
}

// checkIntegrity compares content with a subresource integrity of SHA-512.
func checkIntegrity(content []byte, integrity string) error {
	for value := range strings.FieldsSeq(integrity) {
		digest, ok := strings.CutPrefix(value, "sha512-")
		if !ok {
			continue
		}
		want, err := base64.StdEncoding.DecodeString(digest)
		sum := sha512.Sum512(content)
		if err != nil || subtle.ConstantTimeCompare(want, sum[:]) != 1 {
			return errors.New("the package does not have the integrity that the registry states")
		}
		return nil
	}
	return errors.New("the registry states no sha512 integrity of the package")
}

// configuredRegistry returns the registry of the npm configuration: from the
// environment, or from .npmrc of the working directory or the user; "" if none of
// them names one.
func configuredRegistry() string {
	for _, name := range []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"} {
		if v := os.Getenv(name); v != "" {
			return v
		}
	}
	paths := []string{".npmrc"}
	if home, err := os.UserHomeDir(); err == nil {
		paths = append(paths, filepath.Join(home, ".npmrc"))
	}
	for _, path := range paths {
		if v := registryIn(path); v != "" {
			return v
		}
	}
	return ""
}

// registryIn returns the setting registry of an .npmrc, or "".
func registryIn(path string) (found string) {
	in, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = in.Close() }()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), "=")
		if ok && strings.TrimSpace(name) == "registry" {
			found = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return found
}
