// Package bench loads a server with requests of clients and reports latency, errors,
// and CPU and memory of the process of the server.
//
// With a rate the load is an open loop: each request has a time at which it is due, and
// its latency counts from then, also if it could not be sent because all connections
// waited. So a server that stalls is charged for every request that was due meanwhile
// (no coordinated omission). Without a rate each connection sends its next request when
// the last one is answered, and the latency counts from the sending.
package bench

import (
	"errors"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/sdk/units"
)

// Command is the command.
type Command struct {
	Path string `arg:"" enum:"capture,batch,decide" help:"capture (one event a request), batch or decide."`

	URL         string        `name:"url" default:"http://127.0.0.1:8000" help:"Address of the server."`
	Key         string        `required:"" help:"Project key (phc_...)."`
	Rate        float64       `help:"Requests a second; 0: as fast as the connections allow."`
	Connections int           `default:"16" help:"Connections, each with one request at a time."`
	Duration    time.Duration `default:"10s" help:"Time of the measurement."`
	Warmup      time.Duration `default:"1s" help:"Time before it, with the same load."`
	Events      int           `default:"100" help:"Events in a request of batch."`
	Persons     int           `default:"10000" help:"Persons whose ids the requests have."`
	PID         int           `name:"pid" help:"Process of the server on this machine (Linux), for CPU and memory."`
	Output      string        `short:"o" enum:"table,json,yaml" default:"table" help:"table, json or yaml."`

	Budget Budget `embed:""`
}

// Budget is what the result may cost; a zero value is no limit, except for Errors.
type Budget struct {
	P50    time.Duration `name:"p50" help:"Fail if half of the requests take longer."`
	P99    time.Duration `name:"p99" help:"Fail if one request in a hundred takes longer."`
	P999   time.Duration `name:"p999" help:"Fail if one request in a thousand takes longer."`
	Errors int64         `default:"-1" help:"Fail if more requests fail; -1: no limit."`
	CPU    time.Duration `name:"cpu" help:"Fail if the process of --pid uses more CPU time for a request."`
	Memory string        `name:"memory" help:"Fail if the process of --pid has more resident memory, such as 200MiB."`
}

// Run measures and prints the result. It fails if the result is over the budget.
func (c Command) Run(e *command.Env) error {
	memory, err := c.check()
	if err != nil {
		return err
	}
	p := e.StartProgress(fmt.Sprintf("measuring %s for %s", c.Path, c.Warmup+c.Duration))
	result, err := c.measure()
	p.Stop()
	if err != nil {
		return err
	}
	if err := c.print(e, result); err != nil {
		return err
	}
	return c.Budget.compare(result, memory)
}

// check refuses what cannot be measured, and returns the limit of memory in bytes.
func (c Command) check() (memory int64, err error) {
	switch {
	case c.Rate < 0 || c.Rate > 1e6:
		err = errors.New("--rate: give a number between 0 and 1000000")
	case c.Connections < 1 || c.Connections > 10_000:
		err = errors.New("--connections: give a number between 1 and 10000")
	case c.Duration <= 0 || c.Warmup < 0:
		err = errors.New("--duration: give a time above 0; --warmup: one of at least 0")
	case c.Events < 1 || c.Events > 10_000:
		err = errors.New("--events: give a number between 1 and 10000")
	case c.Persons < 1:
		err = errors.New("--persons: give a number of at least 1")
	case c.PID == 0 && (c.Budget.CPU > 0 || c.Budget.Memory != ""):
		err = errors.New("--cpu and --memory need --pid, the process of the server")
	}
	if err == nil && c.Budget.Memory != "" {
		if memory, err = units.ParseSize(c.Budget.Memory); err != nil {
			err = fmt.Errorf("--memory: %w", err)
		}
	}
	return memory, err
}

// compare returns an error that names every limit that the result is over.
func (b Budget) compare(r *Result, memory int64) error {
	var over []error
	time := func(name string, got, limit Milliseconds) {
		if limit > 0 && got > limit {
			over = append(over, fmt.Errorf("%s is %s, over %s", name, got, limit))
		}
	}
	time("p50", r.P50, milliseconds(b.P50))
	time("p99", r.P99, milliseconds(b.P99))
	time("p99.9", r.P999, milliseconds(b.P999))
	if b.CPU > 0 && r.CPUPerRequest > microseconds(b.CPU) {
		over = append(over, fmt.Errorf("CPU of a request is %.1f µs, over %s", r.CPUPerRequest, b.CPU))
	}
	if b.Errors >= 0 && r.Failed > b.Errors {
		over = append(over, fmt.Errorf("%d requests failed, over %d", r.Failed, b.Errors))
	}
	if memory > 0 && r.Memory > memory {
		over = append(over, fmt.Errorf("resident memory is %d bytes, over %d", r.Memory, memory))
	}
	if len(over) > 0 {
		return fmt.Errorf("over the budget: %w", errors.Join(over...))
	}
	return nil
}

func (c Command) print(e *command.Env, r *Result) error {
	if c.Output != output.Table {
		v, err := r.value()
		if err != nil {
			return err
		}
		return output.Value(e.Out, c.Output, v)
	}
	return output.Rows(e.Out, []string{"MEASURE", "VALUE"}, r.rows())
}
