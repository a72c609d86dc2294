package process

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// User is the user that a process runs as, if it is not the user of the server.
type User struct {
	// Name is the user as configured.
	Name string

	uid, gid uint32
	groups   []uint32
}

// FindUser returns the user for a name, a numeric id or uid:gid. It returns nil for ""
// and for the user of the server. A process of uid:gid is in no other group, one of a
// name or an id is in the groups of that user. The error says what the operator has to
// change.
func FindUser(name string) (*User, error) {
	if name == "" {
		return nil, nil
	}
	u, err := parseUser(name)
	switch {
	case runtime.GOOS != "linux":
		return nil, errors.New("limits.user works on Linux only")
	case err != nil:
		return nil, err
	case int(u.uid) == os.Getuid():
		return nil, nil
	case u.uid == 0:
		return nil, errors.New("limits.user must not be root")
	case os.Geteuid() != 0:
		return nil, fmt.Errorf("limits.user is %s: only a server that runs as root can start a process as another user", name)
	}
	return u, nil
}

// parseUser resolves the three forms of a user.
func parseUser(name string) (*User, error) {
	if uid, gid, found := strings.Cut(name, ":"); found {
		out := &User{Name: name}
		var uidErr, gidErr error
		out.uid, uidErr = parseID(uid)
		out.gid, gidErr = parseID(gid)
		if uidErr != nil || gidErr != nil {
			return nil, fmt.Errorf("limits.user is %q: want a name, a number or uid:gid", name)
		}
		return out, nil
	}
	found, err := user.Lookup(name)
	if _, notID := parseID(name); err != nil && notID == nil { // LookupId cuts larger numbers to 32 bits
		found, err = user.LookupId(name)
	}
	if err != nil {
		return nil, fmt.Errorf("limits.user: this machine has no user %q; a number without a user needs its group, as in 1000:1000", name)
	}
	return fromAccount(name, found)
}

// fromAccount returns the user of an account, with its groups.
func fromAccount(name string, account *user.User) (*User, error) {
	ids, err := account.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("read the groups of %s: %w", name, err)
	}
	out := &User{Name: name}
	var problems [2]error
	out.uid, problems[0] = parseID(account.Uid)
	out.gid, problems[1] = parseID(account.Gid)
	for _, id := range ids {
		group, err := parseID(id)
		if err != nil {
			return nil, err
		}
		out.groups = append(out.groups, group)
	}
	return out, errors.Join(problems[:]...)
}

func parseID(text string) (uint32, error) {
	// The largest value means "unchanged" to the kernel.
	n, err := strconv.ParseUint(text, 10, 32)
	if err == nil && n == 1<<32-1 {
		err = errors.New("no user or group has this id")
	}
	return uint32(n), err
}

// credential returns the ids for the kernel.
func (u *User) credential() *syscall.Credential {
	return &syscall.Credential{Uid: u.uid, Gid: u.gid, Groups: u.groups}
}

// inheritedFile is the path of the first of exec.Cmd's ExtraFiles in the child. The
// child executes it, because the user cannot reach the data directory with the verified
// copies; an interpreter reads a script from it.
const inheritedFile = "/proc/self/fd/3"

// prepare gives the user the directory for the socket, and opens the executable, which
// the user must be allowed to read and execute. The caller closes it.
func (u *User) prepare(executable, socketDir string) (*os.File, error) {
	if err := os.Chown(socketDir, int(u.uid), int(u.gid)); err != nil {
		return nil, fmt.Errorf("hand the directory of the socket to user %s: %w", u.Name, err)
	}
	file, err := os.Open(executable)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !u.may(info, 5) {
		err = fmt.Errorf("user %s may not read and execute %s (mode %#o)", u.Name, executable, info.Mode().Perm())
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// may reports whether the user has all of the permissions in bits, of r = 4, w = 2 and
// x = 1, for a file. It knows no access control lists.
func (u *User) may(info os.FileInfo, bits os.FileMode) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	mode := info.Mode().Perm()
	switch {
	case stat.Uid == u.uid:
		mode >>= 6
	case stat.Gid == u.gid || slices.Contains(u.groups, stat.Gid):
		mode >>= 3
	}
	return mode&bits == bits
}

// checkReach fails with the first directory on the way to path that the user cannot
// pass.
func (u *User) checkReach(path string) error {
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if !u.may(info, 1) {
			return fmt.Errorf("user %s cannot pass the directory %s (mode %#o)", u.Name, dir, info.Mode().Perm())
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// environment returns env without a TMPDIR that the user cannot write to, so that the
// process uses the default of the system.
func (u *User) environment(env []string) []string {
	var out []string
	for _, variable := range env {
		if dir, found := strings.CutPrefix(variable, "TMPDIR="); found {
			info, err := os.Stat(dir)
			if err != nil || !u.may(info, 3) || u.checkReach(dir) != nil {
				continue
			}
		}
		out = append(out, variable)
	}
	return out
}
