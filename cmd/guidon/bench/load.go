package bench

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

const (
	// answerTimeout bounds one request. A request that takes longer has failed.
	answerTimeout = 30 * time.Second
	// longest is the longest latency of the histogram; what is longer counts as it.
	longest = time.Minute
)

// load is one measurement.
type load struct {
	command Command
	client  *fasthttp.HostClient
	body    bodies
	begin   time.Time // of the load; the measurement begins after the warmup
	next    atomic.Int64
}

// counts are the results of one connection.
type counts struct {
	latency *hdrhistogram.Histogram // in microseconds
	ok      int64
	failed  int64
	errors  map[string]int
}

func newCounts() *counts {
	return &counts{latency: hdrhistogram.New(1, longest.Microseconds(), 3), errors: map[string]int{}}
}

func (c Command) measure() (*Result, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("--url: %q is not an http or https URL", c.URL)
	}
	l := &load{command: c, body: newBodies(c, strings.TrimSuffix(u.String(), "/"))}
	l.client = &fasthttp.HostClient{
		Addr: hostAndPort(u), IsTLS: u.Scheme == "https", TLSConfig: &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12},
		MaxConns: c.Connections, ReadTimeout: answerTimeout, WriteTimeout: answerTimeout,
		MaxIdemponentCallAttempts: 1, // a repeated request would hide a failure
	}
	if err := l.try(); err != nil {
		return nil, err
	}
	return l.run()
}

func hostAndPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return u.Host + map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
}

// try sends one request, so that a wrong address or key is an error and no measurement.
func (l *load) try() error {
	cause, err := l.send(fasthttp.AcquireRequest(), fasthttp.AcquireResponse(), -1)
	if err != nil {
		return &remote.UnreachableError{Err: err}
	}
	if cause != "" {
		return fmt.Errorf("the server answers %s; is --key a project key of it?", cause)
	}
	return nil
}

func (l *load) run() (*Result, error) {
	l.begin = time.Now()
	all := make([]*counts, l.command.Connections)
	var wg sync.WaitGroup
	for i := range all {
		all[i] = newCounts()
		wg.Go(func() { l.connection(all[i]) })
	}
	time.Sleep(time.Until(l.begin.Add(l.command.Warmup)))
	before, err := usageOf(l.command.PID)
	if err == nil {
		time.Sleep(time.Until(l.end()))
	}
	after, afterErr := usageOf(l.command.PID)
	wg.Wait()
	if err := errors.Join(err, afterErr); err != nil {
		return nil, fmt.Errorf("--pid: %w", err)
	}
	return l.result(all, before, after), nil
}

func (l *load) end() time.Time { return l.begin.Add(l.command.Warmup + l.command.Duration) }

// connection sends requests until the end.
func (l *load) connection(out *counts) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	for {
		n := l.next.Add(1) - 1
		due := time.Now()
		if rate := l.command.Rate; rate > 0 {
			due = l.begin.Add(time.Duration(float64(n) / rate * float64(time.Second)))
			if !due.Before(l.end()) {
				return
			}
			time.Sleep(time.Until(due))
		} else if !due.Before(l.end()) {
			return
		}
		cause, err := l.send(request, response, n)
		if due.Sub(l.begin) >= l.command.Warmup {
			out.add(time.Since(due), cause, err)
		}
	}
}

func (c *counts) add(latency time.Duration, cause string, err error) {
	if err != nil {
		cause = errorName(err)
	}
	if cause != "" {
		c.failed++
		c.errors[cause]++
	} else {
		c.ok++
	}
	_ = c.latency.RecordValue(min(latency, longest).Microseconds()) // in range
}

// errorName names the kind of an error, so that a table of errors stays short.
func errorName(err error) string {
	switch {
	case errors.Is(err, fasthttp.ErrTimeout):
		return "no answer in time"
	case errors.Is(err, fasthttp.ErrConnectionClosed):
		return "connection closed"
	}
	return "connection failed"
}

// send sends the nth request and returns the status of the answer unless it is 200.
func (l *load) send(request *fasthttp.Request, response *fasthttp.Response, n int64) (cause string, err error) {
	request.Reset()
	request.SetRequestURI(l.body.url)
	request.Header.SetMethod(fasthttp.MethodPost)
	request.Header.SetContentType("application/json")
	request.SetBodyRaw(l.body.nth(n))
	if err := l.client.Do(request, response); err != nil {
		return "", err
	}
	if status := response.StatusCode(); status != fasthttp.StatusOK {
		return fmt.Sprint("status ", status), nil
	}
	return "", nil
}

func (l *load) result(all []*counts, before, after usage) *Result {
	sum := newCounts()
	for _, c := range all {
		sum.latency.Merge(c.latency)
		sum.ok += c.ok
		sum.failed += c.failed
		for cause, n := range c.errors {
			sum.errors[cause] += n
		}
	}
	at := func(percent float64) Milliseconds {
		return Milliseconds(float64(sum.latency.ValueAtQuantile(percent)) / 1000)
	}
	r := &Result{
		Path: l.command.Path, Connections: l.command.Connections, Rate: l.command.Rate, Seconds: l.command.Duration.Seconds(),
		Requests: sum.ok, PerSecond: float64(sum.ok) / l.command.Duration.Seconds(), Failed: sum.failed, Errors: sum.errors,
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: Milliseconds(float64(sum.latency.Max()) / 1000),
		Memory: after.resident, MemoryMax: after.residentMax,
	}
	if sum.ok > 0 {
		r.CPUPerRequest = microseconds(after.cpu-before.cpu) / float64(sum.ok)
	}
	return r
}
