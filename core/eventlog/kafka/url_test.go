package kafka_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/eventlog/kafka"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url  string
		want kafka.Target
	}{
		{"kafka://h:9092/guidon", kafka.Target{Brokers: []string{"h:9092"}, Topic: "guidon"}},
		{"kafka://h1,h2:9093,10.0.0.1,[::1]:9094/a.b_c-d", kafka.Target{
			Brokers: []string{"h1:9092", "h2:9093", "10.0.0.1:9092", "[::1]:9094"}, Topic: "a.b_c-d",
		}},
		{"kafkas://h/t", kafka.Target{Brokers: []string{"h:9092"}, Topic: "t", TLS: true}},
		{"kafka://h/t?tls=true&ca_file=/ca.pem&cert_file=/c.pem&key_file=/k.pem&server_name=broker&client_id=a", kafka.Target{
			Brokers: []string{"h:9092"}, Topic: "t", TLS: true, CAFile: "/ca.pem", CertFile: "/c.pem", KeyFile: "/k.pem", ServerName: "broker", ClientID: "a",
		}},
		{"kafka://u%40x:p%40s%2Fs%3A@h/t", kafka.Target{Brokers: []string{"h:9092"}, Topic: "t", User: "u@x", Password: "p@s/s:", Mechanism: "plain"}},
		{"kafka://u:a:b@h/t?sasl=SCRAM-SHA-256", kafka.Target{Brokers: []string{"h:9092"}, Topic: "t", User: "u", Password: "a:b", Mechanism: "scram-sha-256"}},
		{"kafka://u@h/t?sasl=scram-sha-512&password_file=/p", kafka.Target{
			Brokers: []string{"h:9092"}, Topic: "t", User: "u", Mechanism: "scram-sha-512", PasswordFile: "/p",
		}},
	} {
		if c.want.ClientID == "" {
			c.want.ClientID = "guidon"
		}
		got, err := kafka.Parse(c.url)
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s: got %+v, %v", c.url, got, err)
		}
	}
}

func TestParseRejects(t *testing.T) {
	t.Parallel()
	const secret = "pa55word"
	for url, want := range map[string]string{
		"":                                              "begins with kafka://",
		"h:9092/t":                                      "begins with kafka://",
		"http://h/t":                                    "begins with kafka://",
		"kafka://h":                                     "name of a topic",
		"kafka://h/":                                    "name of a topic",
		"kafka://h/a/b":                                 "name of a topic",
		"kafka://h/..":                                  "name of a topic",
		"kafka://h/" + strings.Repeat("a", 250):         "name of a topic",
		"kafka:///t":                                    "host:port",
		"kafka://h:0/t":                                 "host:port",
		"kafka://h:65536/t":                             "host:port",
		"kafka://h:9092,/t":                             "host:port",
		"kafka://h h/t":                                 "host:port",
		"kafka://u:" + secret + "/x@h/t":                "escapes",
		"kafka://u:" + secret + "%zz@h/t":               "%25",
		"kafka://:" + secret + "@h/t":                   "the user is empty",
		"kafka://h/t?tsl=true":                          "did you mean tls?",
		"kafka://h/t?cafile=/x":                         "did you mean ca_file?",
		"kafka://h/t?pasword_file=/x":                   "did you mean password_file?",
		"kafka://h/t?zzzzzzzz=1":                        "there are ca_file, cert_file",
		"kafka://h/t?tls=maybe":                         "tls must be true",
		"kafkas://h/t?tls=false":                        "tls must be true",
		"kafka://h/t?tls=true&tls=true":                 "given twice",
		"kafka://h/t?client_id=":                        "is empty",
		"kafka://u:" + secret + "@h/t?sasl=md5":         "sasl must be one of plain, scram-sha-256, scram-sha-512",
		"kafka://h/t?sasl=plain":                        "needs a user",
		"kafka://h/t?password_file=/p":                  "needs a user",
		"kafka://u:" + secret + "@h/t?password_file=/p": "both a password and password_file",
		"kafkas://h/t?cert_file=/c":                     "need each other",
		"kafka://h/t?ca_file=/c":                        "need kafkas://",
		"kafka://h/t?a;b=c":                             "cannot be read",
	} {
		_, err := kafka.Parse(url)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", url, err, want)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error has the password: %v", url, err)
		}
	}
	_, err := kafka.Parse("kafka://h:0/?tsl=1&sasl=plain")
	for _, want := range []string{"host:port", "name of a topic", "did you mean tls", "needs a user"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("an error for all that is wrong lacks %q: %v", want, err)
		}
	}
}

func TestConfigRejects(t *testing.T) {
	t.Parallel()
	valid := kafka.DefaultConfig()
	valid.URL = "kafka://h/t"
	if err := valid.Validate(); err != nil {
		t.Fatal(err)
	}
	for key, change := range map[string]func(*kafka.Config){
		"journal.url":                func(c *kafka.Config) { c.URL = "kafka://h" },
		"journal.partitions":         func(c *kafka.Config) { c.Partitions = 0 },
		"journal.replication_factor": func(c *kafka.Config) { c.ReplicationFactor = -1 },
		"journal.compression":        func(c *kafka.Config) { c.Compression = "lzma" },
		"journal.max_record_bytes":   func(c *kafka.Config) { c.MaxRecordBytes = 0 },
		"journal.max_queue_bytes":    func(c *kafka.Config) { c.MaxQueueBytes = 1 },
		"journal.max_queue_records":  func(c *kafka.Config) { c.MaxQueueRecords = 0 },
		"journal.append_timeout":     func(c *kafka.Config) { c.AppendTimeout = 0 },
		"journal.start_timeout":      func(c *kafka.Config) { c.StartTimeout = 0 },
		"journal.tail_bytes":         func(c *kafka.Config) { c.TailBytes = 0 },
		"journal.max_bytes":          func(c *kafka.Config) { c.MaxBytes = -1 },
		"journal.max_age":            func(c *kafka.Config) { c.MaxAge = -1 },
		"journal.trim_interval":      func(c *kafka.Config) { c.TrimInterval = 0 },
	} {
		cfg := valid
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// FuzzParse checks that a URL is refused or complete, and that no error has its password.
func FuzzParse(f *testing.F) {
	f.Add("kafka://u:secretsecret@h1:9092,h2/topic?tls=true&sasl=plain")
	f.Add("kafkas://[::1]:9092/t?ca_file=x&client_id=%20")
	f.Add("kafka://%zz@/..?a=b&a=c")
	f.Fuzz(func(t *testing.T, url string) {
		got, err := kafka.Parse(url)
		if err != nil {
			_, info, _ := strings.Cut(url, "://")
			info, _, _ = strings.Cut(info, "/")
			user, _, at := strings.Cut(info, "@")
			if _, password, ok := strings.Cut(user, ":"); at && ok && len(password) > 12 && strings.Contains(err.Error(), password) {
				t.Errorf("the error has the password: %v", err)
			}
			return
		}
		if len(got.Brokers) == 0 || got.Topic == "" || (got.Mechanism == "") != (got.User == "") || (got.CertFile == "") != (got.KeyFile == "") {
			t.Errorf("%q gives %+v", url, got)
		}
	})
}
