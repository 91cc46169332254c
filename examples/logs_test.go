package examples_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/httpapi/problem"
	"github.com/diegosdk/diego/internal/devcerts"
	"github.com/diegosdk/diego/internal/syslogtest"
	"github.com/diegosdk/diego/rep"
)

// A collected line is a line that a collector has got.
type collected struct {
	guid, instance, domain, source, stream, index, tag, text string
}

// A collector keeps what it gets.
type collector struct {
	mu    sync.Mutex
	lines []collected
}

func (c *collector) add(list ...collected) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, list...)
}

// of are the lines of an instance, and how many lines of all were dropped.
func (c *collector) of(instance string) (lines []collected, dropped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		if l.instance == instance {
			lines = append(lines, l)
		}
		if m := droppedLines.FindStringSubmatch(l.text); m != nil && l.instance == "" {
			n, _ := strconv.Atoi(m[1])
			dropped += n
		}
	}
	return lines, dropped
}

var droppedLines = regexp.MustCompile(`^\[(\d+) lines of containers of cell cell-1 dropped: (?:syslog|otlp)`)

// syslog reads messages from all who connect.
func (c *collector) syslog(t *testing.T, l net.Listener) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for r := bufio.NewReader(conn); ; {
					m, err := syslogtest.Read(r)
					if err != nil {
						if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed) {
							t.Error(err)
						}
						return
					}
					const own, tags = "diego@4711", "tags@4711"
					c.add(collected{m.AppName, m.Param(own, "instance_guid"), m.Param(own, "domain"), m.Param(own, "source"), m.MsgID, m.Param(own, "index"), m.Param(tags, "space"), m.Text})
				}
			}()
		}
	}()
}

// otlp decodes what is posted.
func (c *collector) otlp(t *testing.T) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		data := &logs.LogsData{}
		if err := errors.Join(err, proto.Unmarshal(body, data)); err != nil || r.URL.Path != "/v1/logs" {
			t.Error(r.URL, err)
		}
		for _, of := range data.ResourceLogs {
			about := map[string]string{}
			for _, a := range of.Resource.Attributes {
				about[a.Key] = a.Value.GetStringValue()
				if a.Key == "diego.index" {
					about[a.Key] = strconv.FormatInt(a.Value.GetIntValue(), 10)
				}
			}
			for _, l := range of.ScopeLogs[0].LogRecords {
				of := map[string]string{}
				for _, a := range l.Attributes {
					of[a.Key] = a.Value.GetStringValue()
				}
				c.add(collected{about["service.name"], about["service.instance.id"], about["service.namespace"], of["diego.source"], of["log.iostream"], about["diego.index"], about["diego.tag.space"], l.Body.GetStringValue()})
			}
		}
	})
}

func TestACellForwardsTheOutputOfItsContainers(t *testing.T) {
	c := newCluster(t, "sqlite:"+t.TempDir()+"/diego.db", 1, 0)

	// Servers of the same authority, which want the client's certificate.
	cert, key, err := c.authority.Issue(devcerts.Request{File: "collector", Name: "collector", Hosts: []string{"127.0.0.1"}, For: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(c.authority.CA())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}

	encrypted, posted, late := &collector{}, &collector{}, &collector{}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	encrypted.syslog(t, listener)
	receiver := func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.TLS = config.Clone()
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	otlp := receiver(posted.otlp(t))
	hangs := receiver(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client has gone
		<-r.Context().Done()
	}))
	away := newHost() + ":6514" // where nobody listens yet

	shown, shownKey, err := c.authority.Issue(devcerts.Request{File: "forwarder", Name: "forwarder", For: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	forwarding := []string{
		"--log-forward", "syslog-tls://" + listener.Addr().String() + ",syslog-tcp://" + away + ",otlp+" + otlp.URL + ",otlp+" + hangs.URL,
		"--log-forward-tls-cert", shown, "--log-forward-tls-key", shownKey, "--log-forward-tls-ca", c.authority.CA(),
		"--log-forward-buffer-bytes", "65536", "--log-forward-flush", "1s", "--log-forward-enterprise", "4711", "--drain=false",
	}
	c.startCell("cell-1", append(forwarding, "--max-subscriptions-each", "1")...)

	// More than the buffers hold, though not at once.
	const numbered = 1000
	script := fmt.Sprintf("echo out; echo err >&2; i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); [ $((i %% 100)) = 0 ] && sleep 0.1; done; exec sleep 100000", numbered)
	l := c.app("talker", 1, "wait")
	l.Definition.RunInfo = executor.RunInfo{
		RootFS: "host:", LogGUID: "app-7", LogSource: "WEB",
		Action: executor.Action{Run: &executor.RunAction{Path: "/bin/sh", Args: []string{"-c", script}, User: "nobody"}},
	}
	l.MetricTags = map[string]executor.MetricTag{"space": {Static: "s 1"}}
	c.desire(l)
	instance := func(after string) (guid string) {
		c.eventually("an instance runs", func() (bool, error) {
			list, err := c.resolved("talker")
			if err != nil || len(list) != 1 || list[0].InstanceGUID == after {
				return false, err
			}
			guid = list[0].InstanceGUID
			return guid != "", nil
		})
		return guid
	}
	first := instance("")

	// all waits until every line has reached a collector, or is in a count of
	// dropped lines that has.
	all := func(name string, of *collector) (dropped int) {
		t.Helper()
		c.eventually("every line is known to "+name, func() (bool, error) {
			var lines []collected
			lines, dropped = of.of(first)
			if len(lines)+dropped < numbered+2 {
				return false, fmt.Errorf("%d lines, %d dropped", len(lines), dropped)
			}
			return true, nil
		})
		lines, dropped := of.of(first)
		if len(lines)+dropped != numbered+2 {
			t.Errorf("%s: %d lines and %d dropped, of %d", name, len(lines), dropped, numbered+2)
		}
		before := -1
		for _, l := range lines {
			want := collected{"app-7", first, domain, "WEB", "stdout", "0", "s 1", l.text}
			if l.text == "err" {
				want.stream = "stderr"
			}
			if l != want {
				t.Fatalf("%s: got %+v, want %+v", name, l, want)
			}
			if digits, is := strings.CutPrefix(l.text, "line "); is {
				n, err := strconv.Atoi(digits)
				if err != nil || n <= before {
					t.Errorf("%s: line %s comes after line %d", name, digits, before)
				}
				before = n
			}
		}
		return dropped
	}
	all("syslog", encrypted)
	all("OTLP", posted)

	// The one that was away hears how much it has missed, and the newest lines.
	listening, err := net.Listen("tcp", away)
	if err != nil {
		t.Fatal(err)
	}
	late.syslog(t, listening)
	if dropped := all("the late one", late); dropped < 300 { // besides what a first attempt has taken out of it
		t.Errorf("the late one has missed %d lines; its buffer holds 65536 bytes", dropped)
	}
	if lines, _ := late.of(first); lines[len(lines)-1].text != fmt.Sprint("line ", numbered-1) {
		t.Errorf("the last line is %q", lines[len(lines)-1].text)
	}

	// What is forwarded is also read, with a certificate for the domain.
	cells, err := c.client.Cells(within(t))
	if err != nil {
		t.Fatal(err)
	}
	reader := func(of string, attempts int) *httpapi.RemoteCell {
		o := c.clientOptions(httpapi.LogReaderRole, httpapi.Role("domain:"+of))
		o.Addresses, o.CellID, o.Attempts = []string{cells[0].Address}, "cell-1", attempts
		cell, err := httpapi.NewRemoteCell(o)
		if err != nil {
			t.Fatal(err)
		}
		return cell
	}
	read := func(of string) (text string, err error) {
		for chunk, err := range reader(of, 0).Logs(within(t), rep.LogRequest{ContainerGUID: first}) {
			if err != nil {
				return text, err
			}
			text += string(chunk.Data)
		}
		return text, nil
	}
	if text, err := read(domain); err != nil || !strings.HasPrefix(text, "out\nline 0\n") {
		t.Errorf("its own log: %.20q, %v", text, err)
	}
	if text, err := read("other"); !errors.Is(err, httpapi.ErrForbidden) || text != "" {
		t.Errorf("another's log: %.20q, %v", text, err)
	}

	// A caller may follow as many logs as the cell's settings say.
	follow := rep.LogRequest{ContainerGUID: first, Follow: true}
	for _, err := range reader(domain, 0).Logs(within(t), follow) {
		if err != nil {
			t.Errorf("the first log of a caller: %v", err)
			break
		}
		for _, err := range reader(domain, 1).Logs(within(t), follow) {
			if many := (*problem.TooManyError)(nil); !errors.As(err, &many) || many.Limit != 1 {
				t.Errorf("the second log of a caller: %v", err)
			}
			break
		}
		break
	}

	// After a kill the next cell forwards what its containers write.
	c.cells["cell-1"].kill()
	c.startCell("cell-1", forwarding...)
	second := instance(first)
	c.eventually("the next instance is heard", func() (bool, error) {
		lines, _ := encrypted.of(second)
		return len(lines) > 0, nil
	})
	// A server that hangs holds up the end for a bounded time, and that is told.
	p := c.cells["cell-1"]
	if status := p.terminate(); status != 0 {
		t.Errorf("the cell ended with status %d", status)
	}
	p.await("log lines were not forwarded before the end")
}
