package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/guidonhq/guidon/core/clients/scripts"
)

// pack runs npm pack, which downloads the package, checks its integrity and runs
// nothing of it.
func pack(ctx context.Context, npm, dir, version string) (archive, full string, err error) {
	cmd := exec.CommandContext(ctx, npm, "pack", scripts.Package+"@"+version, "--json", "--ignore-scripts", "--pack-destination", dir)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", "", fmt.Errorf("npm pack: %w%s", err, lastLine(err))
	}
	var packed []struct{ Name, Version, Filename string }
	if err := json.Unmarshal(out, &packed); err != nil || len(packed) != 1 {
		return "", "", fmt.Errorf("read the answer of npm pack: %w", errors.Join(err, errors.New("expected one package")))
	}
	if packed[0].Name != scripts.Package {
		return "", "", fmt.Errorf("npm pack returned the package %q", packed[0].Name)
	}
	return filepath.Join(dir, filepath.Base(packed[0].Filename)), packed[0].Version, nil
}

// lastLine returns the last line that a failed command wrote to its error output.
func lastLine(err error) string {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
	return ": " + lines[len(lines)-1]
}
