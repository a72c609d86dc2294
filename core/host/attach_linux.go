package host

import (
	"net"

	"golang.org/x/sys/unix"
)

// listener tells which process listens at the other end of a Unix socket.
func listener(conn net.Conn) (uid, pid int, known bool) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, 0, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	var who *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { who, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil || err != nil {
		return 0, 0, false
	}
	return int(who.Uid), int(who.Pid), true
}
