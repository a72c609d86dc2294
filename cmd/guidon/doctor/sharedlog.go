package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/app/requestlog"
	"github.com/guidonhq/guidon/core/roles"
)

const (
	// inspectTimeout bounds how long brokers and database may take to answer.
	inspectTimeout = 15 * time.Second
	// manyBehind is the number of records that a reader has not done from which the
	// check warns.
	manyBehind = 100_000
	// clockDifference is the difference of clocks from which the check warns. Leases do
	// not use clocks; the times of events do.
	clockDifference = 2 * time.Second
)

// checkSharedLog checks a log that servers share: whether it can be reached, what it
// promises, how far its readers are, and who processes it.
func checkSharedLog(ctx context.Context, cfg app.Config) []Result {
	if has, err := roles.New(cfg.Roles); err == nil && has.DecideOnly() {
		return []Result{ok("not used: the server has the role decide alone")}
	}
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	r, err := requestlog.Inspect(ctx, cfg.Journal, cfg.Database, cfg.DataDir)
	if err != nil {
		return []Result{fail("check the brokers, journal.url and the credentials in it, and the database: a server does not start without them", "%s: %v", r.Name, err)}
	}
	return append(checkPromises(r, cfg), checkReaders(r)...)
}

// checkPromises checks the log as such, and the clock of the machine.
func checkPromises(r requestlog.Report, cfg app.Config) []Result {
	first := ok("%s: %d partitions", r.Name, len(r.Ends))
	switch {
	case r.ID == "":
		first = warn("guidon serve makes it", "%s: there is no log yet", r.Name)
	case r.Other != "":
		first = fail("correct journal.url, or stop all servers and set journal.accept_other_log to leave that log", "%s: the database belongs to the log %s", r.Name, r.Other)
	}
	out := []Result{first}
	if n := len(r.Ends); r.ID != "" && n < cfg.Journal.Partitions {
		few := fail("set journal.partitions to the number that the log has", "journal.partitions is %d and the log has %d, which does not change", cfg.Journal.Partitions, n)
		if cfg.Journal.URL == "postgres" {
			few.State = Warn
		}
		out = append(out, few)
	}
	if len(r.Weaknesses) > 0 {
		weak := fail("change the settings of the topic or of the server, or set journal.accept_weak_topic", "acknowledged events may be lost: %s", strings.Join(r.Weaknesses, "; "))
		if cfg.Journal.AcceptWeakTopic {
			weak.State = Warn
		}
		out = append(out, weak)
	}
	if r.Clock.Abs() > clockDifference {
		return append(out, warn("let the machines follow the same time (chrony, systemd-timesyncd): times of events shift by the difference",
			"the clock of this machine differs from that of the database by %s", rounded(r.Clock.Abs())))
	}
	return append(out, ok("the clock of the database differs by %s", rounded(r.Clock.Abs())))
}

// checkReaders checks the servers that process the log, and how far they are.
func checkReaders(r requestlog.Report) (out []Result) {
	switch {
	case r.ID == "" || r.Other != "":
		return nil
	case r.Processing == 0:
		out = append(out, warn("start a server with the roles process and deliver, or with all: until then events wait in the log", "no server processes the log"))
	case len(r.Unowned) > 0:
		out = append(out, warn("guidon cluster status shows the servers; after a failure others take partitions over within 8 seconds", "partitions without a server: %s", strings.Trim(fmt.Sprint(r.Unowned), "[]")))
	default:
		out = append(out, ok("%d servers process the %d partitions", r.Processing, len(r.Ends)))
	}
	var behind []string
	most := uint64(0)
	for _, name := range slices.Sorted(maps.Keys(r.Behind)) {
		if n := r.Behind[name]; n > 0 {
			behind, most = append(behind, fmt.Sprintf("%s %d", name, n)), max(most, n)
		}
	}
	switch {
	case most > manyBehind:
		out = append(out, warn("guidon cluster status and guidon plugin list show what is slow or paused; more servers, or more partitions, process more", "records that readers have not done: %s", strings.Join(behind, ", ")))
	case len(behind) > 0:
		out = append(out, ok("records that readers have not done: %s", strings.Join(behind, ", ")))
	case len(r.Behind) > 0:
		out = append(out, ok("%d readers have done all records", len(r.Behind)))
	}
	return out
}
