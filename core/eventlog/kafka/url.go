package kafka

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/text"
)

// Target is what a URL names: a topic of a cluster, and how to connect to it.
type Target struct {
	Brokers []string // host:port
	Topic   string

	User, Password string
	Mechanism      string // of SASL: plain, scram-sha-256 or scram-sha-512; empty without

	TLS        bool
	CAFile     string // the certificates that brokers are verified with, else those of the system
	CertFile   string // of the client, with KeyFile
	KeyFile    string
	ServerName string // the name in the certificates of the brokers, if it is not the host

	PasswordFile string // read when connections are made
	ClientID     string // the name of the client in logs and quotas of the brokers
}

const defaultPort = "9092"

// parameters of a URL, each with the place of its value.
var parameters = map[string]func(t *Target, value string) error{
	"tls": func(t *Target, v string) (err error) {
		on, err := strconv.ParseBool(v)
		if err != nil || t.TLS && !on {
			return errors.New("tls must be true, or false with kafka://")
		}
		t.TLS = on
		return nil
	},
	"sasl": func(t *Target, v string) error {
		if t.Mechanism = strings.ToLower(v); !slices.Contains(mechanisms, t.Mechanism) {
			return fmt.Errorf("sasl must be one of %s", strings.Join(mechanisms, ", "))
		}
		return nil
	},
	"ca_file":       func(t *Target, v string) error { t.CAFile = v; return nil },
	"cert_file":     func(t *Target, v string) error { t.CertFile = v; return nil },
	"key_file":      func(t *Target, v string) error { t.KeyFile = v; return nil },
	"server_name":   func(t *Target, v string) error { t.ServerName = v; return nil },
	"password_file": func(t *Target, v string) error { t.PasswordFile = v; return nil },
	"client_id":     func(t *Target, v string) error { t.ClientID = v; return nil },
}

var mechanisms = []string{"plain", "scram-sha-256", "scram-sha-512"}

var (
	topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)
	hostName  = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
)

// Parse reads a URL kafka://[user:password@]host[:port],…/topic?parameters. kafkas://
// stands for tls=true, a user for sasl=plain if there is no other. The error names all
// that is wrong, and contains neither the password nor the whole URL.
func Parse(raw string) (*Target, error) {
	t := &Target{ClientID: "guidon"}
	scheme, rest, _ := strings.Cut(raw, "://")
	switch scheme {
	case "kafka":
	case "kafkas":
		t.TLS = true
	default:
		return nil, errors.New("a URL of a log begins with kafka:// or kafkas://")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, topic, _ := strings.Cut(rest, "/")
	var errs []error
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		errs = append(errs, t.setUser(authority[:i]))
		authority = authority[i+1:]
	}
	errs = append(errs, t.setBrokers(authority), t.setTopic(topic), t.setParameters(query), t.complete())
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Target) setUser(info string) error {
	user, password, _ := strings.Cut(info, ":")
	var err1, err2 error
	t.User, err1 = url.PathUnescape(user)
	t.Password, err2 = url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return errors.New("the user or the password has a % that begins no escape such as %25")
	}
	if t.User == "" {
		return errors.New("the user is empty")
	}
	return nil
}

func (t *Target) setBrokers(list string) error {
	for _, address := range strings.Split(list, ",") {
		host, port, err := net.SplitHostPort(address)
		if err != nil { // without a port
			host, port = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]"), defaultPort
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || net.ParseIP(host) == nil && !hostName.MatchString(host) {
			return errors.New("the brokers must be host:port, separated by commas; characters such as @ and / in a password are written as escapes (%40, %2F)")
		}
		t.Brokers = append(t.Brokers, net.JoinHostPort(host, port))
	}
	return nil
}

func (t *Target) setTopic(topic string) error {
	if !topicName.MatchString(topic) || topic == "." || topic == ".." {
		return errors.New("the path must be the name of a topic: up to 249 letters, digits, dots, underscores and hyphens")
	}
	t.Topic = topic
	return nil
}

func (t *Target) setParameters(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the parameters cannot be read; special characters in them are written as escapes such as %26")
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		set, known := parameters[name]
		switch {
		case !known:
			errs = append(errs, unknownParameter(name))
		case len(values[name]) > 1:
			errs = append(errs, fmt.Errorf("the parameter %s is given twice", name))
		case values[name][0] == "":
			errs = append(errs, fmt.Errorf("the parameter %s is empty", name))
		default:
			errs = append(errs, set(t, values[name][0]))
		}
	}
	return errors.Join(errs...)
}

func unknownParameter(name string) error {
	if near := text.Nearest(name, maps.Keys(parameters), max(2, len(name)/2)); near != "" {
		return fmt.Errorf("there is no parameter %s; did you mean %s?", text.TruncateChars(strconv.Quote(name), 80), near)
	}
	return fmt.Errorf("there is no parameter %s; there are %s", text.TruncateChars(strconv.Quote(name), 80),
		strings.Join(slices.Sorted(maps.Keys(parameters)), ", "))
}

// complete sets what follows from the parameters, and checks those that need each other.
func (t *Target) complete() error {
	if t.User != "" && t.Mechanism == "" {
		t.Mechanism = "plain"
	}
	var errs []error
	check := func(ok bool, text string) {
		if !ok {
			errs = append(errs, errors.New(text))
		}
	}
	check(t.Mechanism == "" || t.User != "", "sasl needs a user: kafka://user:password@host:port/topic")
	check(t.PasswordFile == "" || t.User != "", "password_file needs a user: kafka://user@host:port/topic")
	check(t.PasswordFile == "" || t.Password == "", "the URL has both a password and password_file")
	check((t.CertFile == "") == (t.KeyFile == ""), "cert_file and key_file need each other")
	check(t.TLS || t.CAFile == "" && t.CertFile == "" && t.ServerName == "", "ca_file, cert_file and server_name need kafkas:// or tls=true")
	return errors.Join(errs...)
}
