package signin

import (
	"crypto/sha256"
	"errors"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/limit"
	"github.com/guidonhq/guidon/core/web/listener"
)

// maxLimited bounds the memory of each limit: about 15 MB.
const maxLimited = 100_000

// Client is the origin of an attempt.
type Client struct {
	Address   netip.Addr
	UserAgent string
	Former    string // the digest of the session that the browser has, which ends; "": none
}

// attempts limits and counts attempts to sign in.
type attempts struct {
	byAddress *limit.Limiter[netip.Addr]
	byAccount *limit.Limiter[[32]byte] // from any address
	byBoth    *limit.Limiter[both]
	counter   Counter
	metrics   metrics
}

type both struct {
	account [32]byte
	address netip.Addr
}

// accountFactor is how many more attempts an account has from all addresses than from one.
const accountFactor = 10

func newAttempts(cfg Config, counter Counter, m metrics) *attempts {
	all := limit.Rate{PerSecond: cfg.AccountRate.PerSecond * accountFactor, Burst: cfg.AccountRate.Burst * accountFactor}
	return &attempts{
		byAddress: limit.New[netip.Addr](cfg.AddressRate, maxLimited),
		byAccount: limit.New[[32]byte](all, maxLimited),
		byBoth:    limit.New[both](cfg.AccountRate, maxLimited),
		counter:   counter, metrics: m,
	}
}

// allow counts an attempt, before any other work. account may be empty. It fails with
// Throttled past a limit.
func (a *attempts) allow(method string, from Client, account string) error {
	err := a.take(from, account)
	if err != nil {
		a.metrics.signIns.WithLabelValues(method, "throttled").Inc()
		a.report(from, "throttled")
	}
	return err
}

func (a *attempts) take(from Client, account string) error {
	address := listener.Client(from.Address)
	err := a.byAddress.Take(address)
	if err == nil && account != "" {
		name := sha256.Sum256([]byte(account))
		if err = a.byBoth.Take(both{name, address}); err == nil {
			err = a.byAccount.Take(name)
		}
	}
	if err == nil {
		return nil
	}
	return fault.New(fault.Throttled, "throttled", "Too many attempts to sign in: wait a little.").After(fault.From(err).RetryAfter)
}

// refuse counts a refused attempt and returns err.
func (a *attempts) refuse(method string, from Client, err *fault.Error) error {
	a.metrics.signIns.WithLabelValues(method, "refused").Inc()
	a.report(from, err.Code)
	return err
}

func (a *attempts) report(from Client, code string) {
	a.counter.AddKey(web.FailedKey{Client: from.Address.String(), UserAgent: from.UserAgent, Code: code})
}

// addReset counts what became of a request for a new password.
func (a *attempts) addReset(from Client, result string) {
	a.metrics.resets.WithLabelValues(result).Inc()
	if result != resetQueued {
		a.counter.Add(activity.Counted{Activity: activity.ResetRequested, Scope: activity.User, Reason: result, Client: from.Address.String()}, from.UserAgent)
	}
}

type metrics struct{ signIns, resets *prometheus.CounterVec }

// newMetrics registers nothing if reg is nil.
func newMetrics(reg prometheus.Registerer) (metrics, error) {
	m := metrics{signIns: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "guidon_sign_ins_total",
		Help: "Attempts to sign in by method (password, link, reset, invitation, oidc) and result (ok, refused, throttled).",
	}, []string{"method", "result"}), resets: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "guidon_password_reset_requests_total",
		Help: "Requests for a link that sets a password by result (queued, throttled, busy: too many e-mails wait).",
	}, []string{"result"})}
	if reg == nil {
		return m, nil
	}
	return m, errors.Join(reg.Register(m.signIns), reg.Register(m.resets))
}
