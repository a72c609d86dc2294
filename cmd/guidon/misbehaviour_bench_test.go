package main_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// BenchmarkDecideBesideMisbehaviours measures the latency of /decide for a flag that
// uses no plugin, idle and while STORM_MISBEHAVIOURS (100) misbehaving plugins come and
// go beside a good sink. A flag of the project uses the operator of a matcher that
// misbehaves, and clients send events and evaluate it all the time, also when idle. The
// neighbour is another server of the same machine: it shows what the processors, which
// the plugins share, add.
//
//	go test ./cmd/guidon -run '^$' -bench DecideBesideMisbehaviours -benchtime 1x
func BenchmarkDecideBesideMisbehaviours(b *testing.B) {
	count := intVariable("STORM_MISBEHAVIOURS", 100)
	for b.Loop() {
		s, other := newStorm(b), newServer(b)
		s.configure(b)
		for _, one := range []*server{s.server, other} {
			one.start(b)
		}
		s.createFlags(b)
		createFlag(b, other, "plain", `{"rollout_percentage":100}`)
		load := startTraffic(b, s.server)
		_ = decisions(b, s.server, func() { time.Sleep(2 * time.Second) })
		idle := decisions(b, s.server, func() { time.Sleep(20 * time.Second) })
		var beside []time.Duration
		neighbour := decisions(b, other, func() {
			beside = decisions(b, s.server, func() {
				for done := 0; done < count; done += waveSize {
					s.wave(b, min(waveSize, count-done))
				}
			})
		})
		s.configure(b)
		s.reload(b)
		s.awaitCalm(b)
		load.stop()
		load.check(b)
		load.checkDelivered(b, s.server)
		for _, p := range []int{50, 99} {
			b.ReportMetric(percentile(idle, p), fmt.Sprintf("idle-p%d-ms", p))
			b.ReportMetric(percentile(neighbour, p), fmt.Sprintf("neighbour-p%d-ms", p))
			b.ReportMetric(percentile(beside, p), fmt.Sprintf("beside-p%d-ms", p))
		}
		b.ReportMetric(percentile(beside, 99)/percentile(idle, 99), "p99-to-idle")
		b.ReportMetric(percentile(beside, 99)/percentile(neighbour, 99), "p99-to-neighbour")
		b.ReportMetric(float64(len(beside)), "decisions")
		for _, one := range []*server{s.server, other} {
			if err := one.stop(b); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// decisions evaluates the flag each 5 ms during work, and returns the latencies.
func decisions(b *testing.B, s *server, work func()) (all []time.Duration) {
	b.Helper()
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		client := http.Client{Timeout: 2 * time.Minute}
		for {
			select {
			case <-end:
				return
			case <-time.After(5 * time.Millisecond):
			}
			begin := time.Now()
			if err := decidePlain(&client, s); err != nil {
				b.Error(err)
			}
			all = append(all, time.Since(begin))
		}
	}()
	work()
	close(end)
	<-ended
	return all
}

// decidePlain evaluates the flag that uses no plugin.
func decidePlain(client *http.Client, s *server) error {
	body := `{"api_key":"` + s.project + `","distinct_id":"d","flag_keys_to_evaluate":["plain"]}`
	res, err := client.Post(s.url+"/decide/?v=3", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || !strings.Contains(string(answer), `"plain":true`)) {
		err = fmt.Errorf("decide: %d %s", res.StatusCode, answer)
	}
	return err
}
