package conn

import (
	"net"

	"golang.org/x/sys/unix"
)

// listener returns the owner of the listening end of a Unix socket.
func listener(conn net.Conn) (uid, pid int, known bool) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, 0, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	var owner *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { owner, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil || err != nil {
		return 0, 0, false
	}
	return int(owner.Uid), int(owner.Pid), true
}
