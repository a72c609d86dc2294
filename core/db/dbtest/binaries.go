package dbtest

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

var errNoBinaries = errors.New("initdb and postgres are not installed (looked in pg_config --bindir, /usr/lib/postgresql/*/bin and PATH): " +
	"install PostgreSQL, on Debian by 'apt-get install postgresql', or set " + env +
	" to the URL of a server whose role may create databases, or to " + withoutPostgres + " to skip these tests")

// binDir is the folder that has both initdb and postgres.
func binDir() (string, error) {
	var dirs []string
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // fails on a bad pattern only
	slices.SortFunc(found, func(a, b string) int { return release(b) - release(a) })
	dirs = append(dirs, found...)
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, dir := range dirs {
		if executable(filepath.Join(dir, "initdb")) && executable(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", errNoBinaries
}

// release is the 15 of /usr/lib/postgresql/15/bin.
func release(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin))) // an odd name sorts last
	return n
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// account is who runs the cluster: postgres refuses to run as root.
type account struct {
	uid, gid int
	attr     *syscall.SysProcAttr
}

func self() account {
	return account{uid: os.Geteuid(), gid: os.Getegid(), attr: &syscall.SysProcAttr{}}
}

func unprivileged() (account, error) {
	if os.Geteuid() != 0 {
		return self(), nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			continue
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			continue
		}
		credential := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return account{uid: uid, gid: gid, attr: &syscall.SysProcAttr{Credential: credential}}, nil
	}
	return account{}, errors.New("postgres refuses to run as root and there is no user postgres or nobody to run it as")
}

// command is a command run as the account, in dir, with a bare environment.
func (a account) command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "TZ=UTC"}
	attr := *a.attr
	cmd.SysProcAttr = &attr
	return cmd
}
