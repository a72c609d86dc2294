package main_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// attackVariable makes the test binary an attacker instead of running tests. Its
// value is the address of the server.
const attackVariable = "GUIDON_TEST_ATTACK"

// attackForever sends bombs, 64 at once, until the process is killed.
func attackForever(address string) {
	s := &server{address: address, url: "http://" + address, project: os.Getenv("GUIDON_TEST_PROJECT"), personal: os.Getenv("GUIDON_TEST_PERSONAL")}
	a := &attack{server: s, bombs: bombs(s.project, s.personal), answers: map[int]int{}}
	a.client = &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for {
				n := int(next.Add(1))
				_, _ = a.post(n, n/len(a.bombs)+n)
			}
		})
	}
	wg.Wait()
}

// BenchmarkHonestBesideHostile measures the latency of small requests: idle, while
// 64 hostile requests at once go to another server of the same machine, and while
// they go to the same server. The second shows what the machine adds, whose
// processors and disk all share. The attacker is a process of lower priority, as it
// would not share the processors of the server.
//
//	go test ./cmd/guidon -run '^$' -bench HonestBesideHostile -benchtime 1x
func BenchmarkHonestBesideHostile(b *testing.B) {
	for b.Loop() {
		s, other := newServer(b), newServer(b)
		s.start(b)
		other.start(b)
		_ = latencies(b, s, time.Second)
		idle := latencies(b, s, 10*time.Second)
		neighbour := besideAttack(b, s, other)
		attacked := besideAttack(b, s, s)
		for _, p := range []int{50, 99} {
			b.ReportMetric(percentile(idle, p), fmt.Sprintf("idle-p%d-ms", p))
			b.ReportMetric(percentile(neighbour, p), fmt.Sprintf("neighbour-p%d-ms", p))
			b.ReportMetric(percentile(attacked, p), fmt.Sprintf("attacked-p%d-ms", p))
		}
		b.ReportMetric(percentile(attacked, 99)/percentile(idle, 99), "p99-to-idle")
		b.ReportMetric(percentile(attacked, 99)/percentile(neighbour, 99), "p99-to-neighbour")
		b.ReportMetric(float64(len(attacked))/20, "honest/s")
		for _, one := range []*server{s, other} {
			if err := one.stop(b); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// besideAttack returns the latencies of s while a process attacks target.
func besideAttack(b *testing.B, s, target *server) []time.Duration {
	nice, err := exec.LookPath("nice")
	if err != nil {
		b.Skip(err)
	}
	attacker := exec.Command(nice, "-n", "19", os.Args[0])
	attacker.Env = append(os.Environ(), attackVariable+"="+target.address, "GUIDON_TEST_PROJECT="+target.project, "GUIDON_TEST_PERSONAL="+target.personal)
	if err := attacker.Start(); err != nil {
		b.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	defer func() {
		_ = attacker.Process.Kill()
		_ = attacker.Wait()
	}()
	return latencies(b, s, 20*time.Second)
}

// latencies sends small requests for a time and returns their latencies.
func latencies(b *testing.B, s *server, d time.Duration) []time.Duration {
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for _, request := range honestRequests(s) {
		wg.Go(func() {
			for time.Now().Before(end) {
				begin := time.Now()
				if code, err := s.post(request[0], request[1]); err != nil || code != http.StatusOK {
					b.Errorf("%s: %d %v", request[0], code, err)
				}
				mu.Lock()
				all = append(all, time.Since(begin))
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	return all
}

func percentile(d []time.Duration, p int) float64 {
	slices.Sort(d)
	return float64(d[(len(d)-1)*p/100]) / 1e6
}
