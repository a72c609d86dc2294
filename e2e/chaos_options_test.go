//go:build e2e

package e2e_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// chaosOptions are the settings of a round.
type chaosOptions struct {
	smallTail  bool             // nodes read records from the log, not from memory
	rate       time.Duration    // of messages; 0 for no limit
	brokers    int              // with one, topics have one replica; 0 for the log in Postgres
	clocks     map[string]int64 // seconds by which the clocks of nodes are wrong; nil for right ones
	erase      bool             // some persons are erased
	clickhouse bool             // events are in ClickHouse
}

// optionsOf returns the options of a seed. Short rounds have one broker and right clocks.
// CHAOS_LOG (kafka, postgres), CHAOS_STORE (postgres, clickhouse) and CHAOS_ERASE (0, 1)
// replace what the seed chooses.
func optionsOf(t *testing.T, plan chaosPlan, seed uint64) chaosOptions {
	t.Helper()
	o := chaosOptions{smallTail: seed%2 == 0, brokers: 1}
	if seed%3 == 0 {
		o.rate = time.Second
	}
	if plan.varied && seed/2%2 == 0 {
		o.clocks = map[string]int64{"node1": 60, "node2": -60, "node4": int64(seed%121) - 60}
	}
	if plan.varied && seed/4%2 == 0 {
		o.brokers = 3
	}
	if chaosChoice(t, "CHAOS_LOG", plan.varied && seed%5 == 0, "kafka", "postgres") {
		o.brokers = 0
	}
	o.clickhouse = chaosChoice(t, "CHAOS_STORE", plan.varied && seed%7 < 2, "postgres", "clickhouse")
	o.erase = chaosChoice(t, "CHAOS_ERASE", plan.varied && seed%11 < 4, "0", "1")
	return o
}

func (o chaosOptions) String() string {
	return fmt.Sprintf("log in %s, events in ClickHouse %t, small tail %t, clocks %v, a message in %s, erasures %t", o.log(), o.clickhouse, o.smallTail, o.clocks, o.rate, o.erase)
}

func (o chaosOptions) log() string {
	if o.brokers == 0 {
		return "Postgres"
	}
	return fmt.Sprintf("Kafka with %d brokers", o.brokers)
}

// chaosVariables are those that a round depends on, beside its seed.
var chaosVariables = []string{"CHAOS_EVENTS", "CHAOS_FAULTS", "CHAOS_LOG", "CHAOS_STORE", "CHAOS_ERASE"}

// chaosCommand returns the variables that repeat a round: its events and faults depend on
// all of them.
func chaosCommand(seed uint64) string {
	set := fmt.Sprint("CHAOS_SEED=", seed)
	if os.Getenv("CHAOS_ROUNDS") != "" {
		set += " CHAOS_ROUNDS=1" // that round only; any number makes rounds long
	}
	for _, name := range chaosVariables {
		if v := os.Getenv(name); v != "" {
			set += " " + name + "=" + v
		}
	}
	return set
}

// chaosSetting returns the number in a variable, 0 without one.
func chaosSetting(t *testing.T, name string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv(name), "0"), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// chaosChoice reports whether a variable has the second of two values; chosen without one.
func chaosChoice(t *testing.T, name string, chosen bool, values ...string) bool {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		return chosen
	}
	i := slices.Index(values, value)
	if i < 0 {
		t.Fatalf("%s is %q, not one of %v", name, value, values)
	}
	return i == 1
}
