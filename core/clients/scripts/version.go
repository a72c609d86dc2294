package scripts

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// versionText is a version of an npm package.
var versionText = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})(-[0-9A-Za-z.-]{1,64})?$`)

// IsVersion reports whether text is a full version, such as 1.449.2 or 2.0.0-rc.1.
func IsVersion(text string) bool { return versionText.MatchString(text) }

// installed returns the versions in a directory that have the main script, newest
// first.
func installed(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // not installed
	}
	var out []string
	for _, e := range entries {
		if !IsVersion(e.Name()) {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, e.Name(), "dist", Main)); err == nil {
			out = append(out, e.Name())
		}
	}
	slices.SortFunc(out, func(a, b string) int { return compareVersions(b, a) })
	return out
}

// compareVersions orders versions by their numbers. A pre-release is before its
// release; two of them are ordered by their text.
func compareVersions(a, b string) int {
	x, y := versionText.FindStringSubmatch(a), versionText.FindStringSubmatch(b)
	if x == nil || y == nil {
		return cmp.Compare(a, b)
	}
	for i := 1; i <= 3; i++ {
		m, _ := strconv.Atoi(x[i])
		n, _ := strconv.Atoi(y[i])
		if d := cmp.Compare(m, n); d != 0 {
			return d
		}
	}
	if (x[4] == "") != (y[4] == "") {
		return cmp.Compare(len(y[4]), len(x[4]))
	}
	return cmp.Compare(x[4], y[4])
}

// newestOf returns the first of versions, which are sorted, with the prefix. It
// prefers releases.
func newestOf(versions []string, prefix string) (string, bool) {
	found := ""
	for _, v := range versions {
		if prefix != "" && !strings.HasPrefix(v, prefix+".") {
			continue
		}
		if !strings.Contains(v, "-") {
			return v, true
		}
		if found == "" {
			found = v
		}
	}
	return found, found != ""
}
