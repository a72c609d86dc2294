package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// usersBase is the directory below which sockets of processes of other users are made,
// if it can be: only root writes to its parent.
const usersBase = "/run/guidon-users"

// PathFor returns the directory for sockets of processes of a user; nil is the user of
// the server. Other users can pass, but not read it: each process gets a directory of
// its own in it.
func (r *RunDir) PathFor(u *User) (string, error) {
	if u == nil {
		return r.Path()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users == nil {
		users, err := newUsersDir()
		if err != nil {
			return "", fmt.Errorf("make a directory for sockets that user %s can reach: %w", u.Name, err)
		}
		r.users = users
	}
	path, err := r.users.Path()
	return path, errors.Join(err, u.checkReach(path))
}

// newUsersDir makes the directory.
func newUsersDir() (*RunDir, error) {
	var problems []error
	for _, base := range []string{usersBase, filepath.Join(os.TempDir(), fmt.Sprintf("guidon-%d-users", os.Getuid()))} {
		r, err := makeRunDir(base)
		if err == nil {
			r.mode = 0o711
			if err = errors.Join(os.Chmod(base, r.mode), os.Chmod(r.path, r.mode)); err == nil {
				return r, nil
			}
			err = errors.Join(err, r.Remove())
		}
		problems = append(problems, err)
	}
	return nil, errors.Join(problems...)
}
