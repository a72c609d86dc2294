// Package natstest is a small server of NATS for tests: as much of the protocol and of
// JetStream as the client of a sink that publishes needs. The tests of the sink also run
// against a real server (-tags e2e), which is too large to compile for every test run.
//
// It answers the connection that asks and routes nothing between connections. A stream
// keeps its messages in memory and drops those whose id it knows, however old they are.
package natstest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options change a server. The zero value has streams and requires no token.
type Options struct {
	Port       int    // 0 for a free one
	Token      string // required from clients
	MaxPayload int    // bytes of a message with its header; 0 for 1 MiB
	NoStreams  bool   // without JetStream
	Streams    *Streams
}

// Streams outlives a server: another one goes on with it.
type Streams struct {
	mu     sync.Mutex
	byName map[string]*stream
}

type stream struct {
	config   json.RawMessage
	subjects []string
	messages []Message
	ids      map[string]int // sequence numbers by Nats-Msg-Id
}

// Message is a message of a stream.
type Message struct {
	Subject string
	Header  []byte // with its first line, as on the wire; may be empty
	Data    []byte
}

// Messages returns the messages of a stream in their order, nil if there is none.
func (s *Streams) Messages(name string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.byName[name]
	if st == nil {
		return nil
	}
	return st.messages[:len(st.messages):len(st.messages)]
}

// Server is a running server.
type Server struct {
	Streams *Streams

	opts     Options
	listener net.Listener
	running  sync.WaitGroup

	mu          sync.Mutex
	connections map[net.Conn]bool // nil after Stop
}

// Start starts a server that ends with tb.
func Start(tb testing.TB, opts Options) *Server {
	tb.Helper()
	if opts.MaxPayload == 0 {
		opts.MaxPayload = 1 << 20
	}
	if opts.Streams == nil {
		opts.Streams = &Streams{}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(opts.Port)))
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{Streams: opts.Streams, opts: opts, listener: listener, connections: map[net.Conn]bool{}}
	s.running.Go(s.accept)
	tb.Cleanup(s.Stop)
	return s
}

// URL is the address for clients.
func (s *Server) URL() string { return "nats://" + s.listener.Addr().String() }

// Stop closes all connections, as a server that is killed. Stopping twice does nothing.
func (s *Server) Stop() {
	_ = s.listener.Close()
	s.mu.Lock()
	for c := range s.connections {
		_ = c.Close()
	}
	s.connections = nil
	s.mu.Unlock()
	s.running.Wait()
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.connections == nil {
			_ = conn.Close()
		} else {
			s.connections[conn] = true
			s.running.Go(func() { s.serve(conn) })
		}
		s.mu.Unlock()
	}
}

// client is one connection; a single goroutine uses it.
type client struct {
	server *Server
	in     *bufio.Reader
	out    *bufio.Writer
	subs   map[string]string // subjects by the id of the subscription
}

func (s *Server) serve(conn net.Conn) {
	c := &client{server: s, in: bufio.NewReader(conn), out: bufio.NewWriter(conn), subs: map[string]string{}}
	_, _ = fmt.Fprintf(c.out, `INFO {"server_id":"fake","version":"2.12.0","proto":1,"headers":true,"auth_required":%t,"max_payload":%d}`+"\r\n",
		s.opts.Token != "", s.opts.MaxPayload)

	var err error
	for err == nil {
		// Answers leave when the client has nothing more to say for now.
		if c.in.Buffered() == 0 {
			err = c.out.Flush()
		}
		if err == nil {
			err = c.handle()
		}
	}

	// The client learns why it is refused.
	if refused, ok := errors.AsType[refusal](err); ok {
		_, _ = fmt.Fprintf(c.out, "-ERR '%s'\r\n", string(refused))
		_ = c.out.Flush()
	}
	s.mu.Lock()
	delete(s.connections, conn)
	s.mu.Unlock()
	_ = conn.Close()
}

// refusal is the text of an error that ends the connection.
type refusal string

func (r refusal) Error() string { return string(r) }

// handle reads one operation of the client and carries it out.
func (c *client) handle() error {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return err
	}
	operation, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	args := strings.Fields(rest)
	switch strings.ToUpper(operation) {
	case "CONNECT":
		var options struct {
			Token string `json:"auth_token"`
		}
		if err := json.Unmarshal([]byte(rest), &options); err != nil {
			return err
		}
		if options.Token != c.server.opts.Token {
			return refusal("Authorization Violation")
		}
	case "PING":
		_, _ = c.out.WriteString("PONG\r\n")
	case "PONG":
	case "SUB": // subject, perhaps a queue, id
		c.subs[args[len(args)-1]] = args[0]
	case "UNSUB":
		delete(c.subs, args[0])
	case "PUB", "HPUB":
		return c.publish(args, operation == "HPUB")
	default:
		return refusal("Unknown Protocol Operation")
	}
	return nil
}

// publish reads the rest of a message: "subject [reply] [bytes of the header] bytes".
func (c *client) publish(args []string, hasHeader bool) error {
	total, err := strconv.Atoi(args[len(args)-1])
	if err != nil {
		return err
	}
	if total > c.server.opts.MaxPayload {
		return refusal("Maximum Payload Violation")
	}
	args = args[:len(args)-1]
	header := 0
	if hasHeader {
		if header, err = strconv.Atoi(args[len(args)-1]); err != nil {
			return err
		}
		args = args[:len(args)-1]
	}

	content := make([]byte, total+len("\r\n"))
	if _, err := io.ReadFull(c.in, content); err != nil {
		return err
	}
	m := Message{Subject: args[0], Header: content[:header], Data: content[header:total]}
	if len(args) == 1 {
		c.server.answer(m) // the client waits for no answer
		return nil
	}
	c.deliver(args[1], c.server.answer(m))
	return nil
}

// deliver sends an answer to the subscription of its subject. Nil says that the
// subject has no listener.
func (c *client) deliver(subject string, answer any) {
	for id, pattern := range c.subs {
		if !matches(pattern, subject) {
			continue
		}
		if answer == nil {
			const noListener = "NATS/1.0 503\r\n\r\n"
			_, _ = fmt.Fprintf(c.out, "HMSG %s %s %d %d\r\n%s\r\n", subject, id, len(noListener), len(noListener), noListener)
			return
		}
		text, err := json.Marshal(answer)
		if err != nil {
			panic(err) // it is made of maps
		}
		_, _ = fmt.Fprintf(c.out, "MSG %s %s %d\r\n%s\r\n", subject, id, len(text), text)
		return
	}
}

// answer returns what JetStream replies to a message, nil if its subject has no listener.
func (s *Server) answer(m Message) any {
	if s.opts.NoStreams {
		return nil
	}
	s.Streams.mu.Lock()
	defer s.Streams.mu.Unlock()
	if request, ok := strings.CutPrefix(m.Subject, "$JS.API.STREAM."); ok {
		dot := strings.LastIndex(request, ".")
		return s.Streams.request(request[:dot], request[dot+1:], m.Data)
	}
	for name, st := range s.Streams.byName {
		if !st.takes(m.Subject) {
			continue
		}
		seq, known := st.add(m)
		return map[string]any{"stream": name, "seq": seq, "duplicate": known}
	}
	return nil
}

// request carries out a request about a stream.
func (s *Streams) request(verb, name string, body []byte) any {
	st := s.byName[name]
	switch {
	case verb == "CREATE":
		var config struct {
			Subjects []string `json:"subjects"`
		}
		if err := json.Unmarshal(body, &config); err != nil {
			return failure(400, 10025, "bad request")
		}
		if st != nil {
			return failure(400, 10058, "stream name already in use with a different configuration")
		}
		st = &stream{config: body, subjects: config.Subjects, ids: map[string]int{}}
		if s.byName == nil {
			s.byName = map[string]*stream{}
		}
		s.byName[name] = st
		return st.info()
	case st == nil:
		return failure(404, 10059, "stream not found")
	case verb == "INFO":
		return st.info()
	case verb == "MSG.GET":
		var wanted struct {
			Seq int `json:"seq"`
		}
		if err := json.Unmarshal(body, &wanted); err != nil || wanted.Seq < 1 || wanted.Seq > len(st.messages) {
			return failure(404, 10037, "no message found")
		}
		m := st.messages[wanted.Seq-1]
		return map[string]any{"message": map[string]any{"subject": m.Subject, "seq": wanted.Seq, "hdrs": m.Header, "data": m.Data, "time": time.Time{}}}
	}
	return failure(400, 10025, "this server does not know the request "+verb)
}

func failure(status, code int, text string) any {
	return map[string]any{"error": map[string]any{"code": status, "err_code": code, "description": text}}
}

func (st *stream) info() any {
	n := len(st.messages)
	return map[string]any{"config": st.config, "state": map[string]any{"messages": n, "first_seq": min(n, 1), "last_seq": n}}
}

func (st *stream) takes(subject string) bool {
	for _, pattern := range st.subjects {
		if matches(pattern, subject) {
			return true
		}
	}
	return false
}

// add keeps a message unless its id is known. It returns the sequence number of the message.
func (st *stream) add(m Message) (seq int, known bool) {
	id := m.id()
	if seq, known := st.ids[id]; known && id != "" {
		return seq, true
	}
	st.messages = append(st.messages, m)
	st.ids[id] = len(st.messages)
	return len(st.messages), false
}

// id returns the header Nats-Msg-Id.
func (m Message) id() string {
	_, lines, _ := bytes.Cut(m.Header, []byte("\r\n")) // after "NATS/1.0"
	h, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(lines))).ReadMIMEHeader()
	if err != nil {
		return ""
	}
	return h.Get("Nats-Msg-Id")
}

// matches reports whether a subject is one of a pattern, in which * stands for a word and
// > for all that follow.
func matches(pattern, subject string) bool {
	words := strings.Split(subject, ".")
	for i, want := range strings.Split(pattern, ".") {
		switch {
		case i >= len(words):
			return false
		case want == ">":
			return true
		case want != "*" && want != words[i]:
			return false
		}
	}
	return len(words) == strings.Count(pattern, ".")+1
}
