package main_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"
)

func BenchmarkZZ(b *testing.B) {
	s := newServer(b)
	os.Setenv("GUIDON_HTTP_PPROF", "true")
	s.start(b)
	attacker := exec.Command("chrt", "-i", "0", os.Args[0])
	attacker.Env = append(os.Environ(), attackVariable+"="+s.address, "GUIDON_TEST_PROJECT="+s.project, "GUIDON_TEST_PERSONAL="+s.personal)
	attacker.Start()
	time.Sleep(3 * time.Second)
	go latencies(b, s, 25*time.Second)
	get := func(path, to string) {
		r, err := http.Get("http://" + s.admin + path)
		if err != nil {
			b.Fatal(err)
		}
		d, _ := io.ReadAll(r.Body)
		os.WriteFile(to, d, 0o644)
		b.Log(to, r.StatusCode, len(d))
	}
	get("/debug/pprof/profile?seconds=10", "/tmp/work/cpu.pb")
	get("/debug/pprof/allocs?seconds=5", "/tmp/work/allocs.pb")
	get("/debug/pprof/trace?seconds=2", "/tmp/work/trace.out")
	attacker.Process.Kill()
	attacker.Wait()
	s.stop(b)
}
