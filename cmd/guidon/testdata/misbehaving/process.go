package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// beforeHandshake is what the process does before go-plugin's handshake.
func beforeHandshake() {
	switch mode {
	case "handshake_never":
		select {}
	case "handshake_exit":
		os.Exit(random.IntN(256))
	case "handshake_garbage":
		lines := []string{
			"hello, I am a plugin\n", "1|1|unix|/nowhere|grpc|\n", "1|1|tcp|127.0.0.1:22|grpc|\n", "99|1|unix|/tmp/a|grpc|\n",
			"1|99|unix|/tmp/a|grpc|\n", "||||||||||||\n", "1|1|unix|" + strings.Repeat("/a", 100_000) + "|grpc|\n",
			strings.Repeat("\x00\xff", 1<<20), "1|1|unix|/var/run/docker.sock|grpc|!!!!\n", "1|1|unix|../../../etc/passwd|grpc|\n",
		}
		fmt.Print(lines[random.IntN(len(lines))])
		select {}
	case "socket_without_server":
		path := os.Getenv("PLUGIN_UNIX_SOCKET_DIR") + "/plugin"
		if _, err := net.Listen("unix", path); err == nil {
			fmt.Printf("1|1|unix|%s|grpc|\n", path)
		}
		select {}
	case "children":
		leaveChildren()
	}
}

// leaveChildren starts processes that outlive this one, in its group and out of it.
func leaveChildren() {
	for n := range 6 {
		child := exec.Command("sleep", "1000000")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: n%3 == 1, Setpgid: n%3 == 2}
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// whileServing is what the process does beside its calls.
func whileServing() {
	pause := time.Duration(random.IntN(3000)) * time.Millisecond
	switch mode {
	case "exit_sometime":
		time.Sleep(pause)
		os.Exit(random.IntN(3))
	case "crash_sometime":
		time.Sleep(pause)
		panic("no luck")
	case "freeze":
		time.Sleep(pause)
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "flood_stderr":
		flood(os.Stderr)
	case "flood_stdout":
		flood(os.Stdout)
	case "memory":
		grow()
	case "busy":
		for range 8 {
			go func() {
				for {
				}
			}()
		}
	case "descriptors":
		for {
			if _, err := os.Open("/dev/null"); err != nil {
				time.Sleep(time.Second)
			}
		}
	case "remove_socket":
		time.Sleep(pause)
		_ = os.RemoveAll(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"))
		os.Exit(1)
	}
}

// flood writes without an end: lines, one line without an end, or records of a log.
func flood(to *os.File) {
	text := [][]byte{
		[]byte("noise\n"), bytes.Repeat([]byte("x"), 1<<16), append(bytes.Repeat([]byte("y"), 1<<20), '\n'),
		[]byte(`{"@level":"error","@message":"noise","@timestamp":"2026-01-01T00:00:00Z"}` + "\n"), []byte("panic: not really\n"), {0, 255, '\n'},
	}[random.IntN(6)]
	for {
		if _, err := to.Write(text); err != nil {
			return
		}
	}
}

// grow takes memory until the process ends.
func grow() {
	var all [][]byte
	for {
		block := make([]byte, 8<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		all = append(all, block)
		time.Sleep(10 * time.Millisecond)
	}
}
