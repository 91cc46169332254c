package syslog_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/diegosdk/diego/internal/syslogtest"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/logforward"
	"github.com/diegosdk/diego/rep/logforward/syslog"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.FixedZone("", 3600))

func TestALineBecomesAMessage(t *testing.T) {
	index := 0
	long := strings.Repeat("é", 200)
	for name, c := range map[string]struct {
		record logforward.Record
		want   string
	}{
		"an instance": {
			logforward.Record{CellID: "cell-1", Text: []byte("hello"), Labels: rep.LogLabels{
				LogGUID: "app-7", Source: "WEB", InstanceGUID: "i-1", Domain: "apps", Index: &index, Stream: "stdout",
				Tags: map[string]string{"space": "s 1", "org": "o"},
			}},
			`<14>1 2026-01-02T02:04:05.678901Z cell-1 app-7 WEB/0 stdout [diego@32473 log_guid="app-7" source="WEB" domain="apps" instance_guid="i-1" index="0" stream="stdout"][tags@32473 org="o" space="s 1"] hello`,
		},
		"a task's error": {
			logforward.Record{CellID: "cell-1", Text: []byte("hello"), Labels: rep.LogLabels{LogGUID: "job", InstanceGUID: "i-1", Stream: "stderr"}},
			`<11>1 2026-01-02T02:04:05.678901Z cell-1 job - stderr [diego@32473 log_guid="job" instance_guid="i-1" stream="stderr"] hello`,
		},
		"an empty line without labels": {logforward.Record{}, `<14>1 2026-01-02T02:04:05.678901Z - - - - [diego@32473]`},
		"quotes and brackets": {
			logforward.Record{CellID: "a b", Text: []byte(` "]\ `), Labels: rep.LogLabels{LogGUID: "a\nb", Source: `"]\`, Tags: map[string]string{`a=]" b`: `"]\`, "": ""}}},
			`<14>1 2026-01-02T02:04:05.678901Z a_b a_b "]\ - [diego@32473 log_guid="a b" source="\"\]\\"][tags@32473 _="" a____b="\"\]\\"]  "]\ `,
		},
		"controls and line ends": {
			logforward.Record{CellID: "c\n", Text: []byte("hello"), Labels: rep.LogLabels{LogGUID: "a\r\n<11>1 x\x1b[2J", Source: "\u0085\x7f\u2028é\n",
				Tags: map[string]string{"t\n": "\t\x00v\u2029\u009b"}}},
			`<14>1 2026-01-02T02:04:05.678901Z c_ a__<11>1_x_[2J _________ - [diego@32473 log_guid="a  <11>1 x [2J" source="   é "][tags@32473 t_="  v  "] hello`,
		},
		"what is too long": {
			logforward.Record{CellID: strings.Repeat("c", 300), Labels: rep.LogLabels{LogGUID: long, Tags: map[string]string{strings.Repeat("n", 40): "v"}}},
			`<14>1 2026-01-02T02:04:05.678901Z ` + strings.Repeat("c", 255) + " " + strings.Repeat("_", 48) + ` - - [diego@32473 log_guid="` + long + `"][tags@32473 ` + strings.Repeat("n", 32) + `="v"]`,
		},
		"bytes that are not text": {
			logforward.Record{Text: []byte("\xff\x00"), Labels: rep.LogLabels{Source: "\xff"}},
			`<14>1 2026-01-02T02:04:05.678901Z - - _ - [diego@32473 source="` + "\ufffd\"] \xff\x00",
		},
		"a mark of text":                 {logforward.Record{Text: []byte("\ufeffé")}, "<14>1 2026-01-02T02:04:05.678901Z - - - - [diego@32473] \ufeffé"},
		"two marks of text before bytes": {logforward.Record{Text: []byte("\ufeff\ufeff\xff")}, "<14>1 2026-01-02T02:04:05.678901Z - - - - [diego@32473] \xff"},
		"a mark of text before bytes":    {logforward.Record{Text: []byte("\ufeff\xff")}, "<14>1 2026-01-02T02:04:05.678901Z - - - - [diego@32473] \xff"},
	} {
		c.record.Time = at
		got := string(syslog.Append(nil, &c.record, 0))
		if got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
		if _, err := syslogtest.Parse(got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := string(syslog.Append(nil, &logforward.Record{Time: at}, 4711)); !strings.Contains(got, "[diego@4711]") {
		t.Errorf("with an enterprise of one's own: %s", got)
	}
}

func FuzzLabelsWithEveryKindOfByte(f *testing.F) {
	f.Add("cell-1", "app-7", "WEB", "space", "s 1", []byte("hello"), 3)
	f.Add("", "a\nb", `"]\`, `=]" `, "\xff\"]\\", []byte("\xef\xbb\xbf\xff"), -1)
	f.Add("c\x00", "é", "- -", "", "\n", []byte(nil), 0)
	f.Fuzz(func(t *testing.T, cell, guid, source, tag, value string, text []byte, index int) {
		r := logforward.Record{Time: at, CellID: cell, Text: text, Labels: rep.LogLabels{
			LogGUID: guid, Source: source, InstanceGUID: value, Domain: tag, Index: &index, Stream: "stdout", Tags: map[string]string{tag: value, "z" + tag: "z"},
		}}
		message := string(syslog.Append(nil, &r, 0))
		m, err := syslogtest.Parse(message)
		if err != nil {
			t.Fatal(err)
		}
		shown := func(value string) string {
			return strings.Map(func(r rune) rune {
				if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
					return ' '
				}
				return r
			}, strings.ToValidUTF8(value, "\ufffd"))
		}
		for name, want := range map[string]string{"log_guid": guid, "source": source, "instance_guid": value, "domain": tag} {
			if got := m.Param("diego@32473", name); got != shown(want) {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if len(m.Data) != 2 || len(m.Data[1].Params) != 2 || m.Data[1].Params[0][1] != shown(value) && m.Data[1].Params[1][1] != shown(value) {
			t.Errorf("the tags are %+v", m.Data)
		}
		if m.Text != string(text) && (utf8.Valid(text) || m.Text != strings.TrimLeft(string(text), "\ufeff")) {
			t.Errorf("the text is %q, want %q", m.Text, text)
		}
	})
}

// received are the texts that a connection brings until it ends.
func received(conn net.Conn) (texts []string) {
	for r := bufio.NewReader(conn); ; {
		m, err := syslogtest.Read(r)
		if err != nil {
			return texts
		}
		texts = append(texts, m.Text)
	}
}

func TestASinkConnectsAgainWhenTheServerHasClosedTheConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := &syslog.Sink{Address: listener.Addr().String()}
	for _, text := range []string{"one", "two"} {
		if err := s.Send(t.Context(), []logforward.Record{{Time: at, Text: []byte(text)}, {Time: at, Text: []byte("more")}}); err != nil {
			t.Fatal(err)
		}
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(conn)
		for _, want := range []string{text, "more"} {
			if m, err := syslogtest.Read(r); m.Text != want || err != nil {
				t.Errorf("got %q, want %q, %v", m.Text, want, err)
			}
		}
		conn.Close()
		syslog.AwaitEnd(s)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

func TestAServerThatReadsNothingIsGivenUpWhenTheTimeIsOver(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := &syslog.Sink{Address: listener.Addr().String()}
	records := make([]logforward.Record, 2000)
	for i := range records {
		records[i] = logforward.Record{Time: at, Text: make([]byte, 10000)} // more than the kernel buffers
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Send(ctx, records); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), s.Address) {
		t.Errorf("got %v", err)
	}
	// The half of a message that has come is the end of that connection.
	go func() {
		for range 2 {
			if conn, err := listener.Accept(); err == nil {
				go received(conn)
			}
		}
	}()
	if err := s.Send(t.Context(), records[:1]); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestAServerThatIsNotThereIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	s := &syslog.Sink{Address: listener.Addr().String()}
	if err := s.Send(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "connecting to "+s.Address) {
		t.Errorf("got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
