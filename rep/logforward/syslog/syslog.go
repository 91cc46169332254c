// Package syslog sends lines to a syslog server: RFC 5424 over TCP with TLS (RFC
// 5425), each message with its length before it (RFC 6587, octet counting).
//
// # Concurrent use
//
// A [Sink] is for one goroutine at a time.
package syslog

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/diegosdk/diego/rep/logforward"
)

// ExampleEnterprise is the private enterprise number that RFC 5612 sets aside for
// documentation.
const ExampleEnterprise = 32473

// A Sink is a logforward.Sink that sends to one server over one connection at a
// time. Syslog has no answers: what was written to a connection that then breaks
// may be lost. The zero value is not usable; Address is required. A Sink is for
// one goroutine at a time.
type Sink struct {
	// Address is the server's host and port.
	Address string
	// TLS is for the connections; nil means TCP without encryption. Without a
	// ServerName, the host of Address is verified.
	TLS *tls.Config
	// Enterprise is the private enterprise number in the names of structured data;
	// 0 means ExampleEnterprise.
	Enterprise uint32

	conn net.Conn
	gone chan struct{} // closed when the server has closed conn
}

var _ logforward.Sink = (*Sink)(nil)

// Send implements [logforward.Sink].
func (s *Sink) Send(ctx context.Context, records []logforward.Record) error {
	if err := s.connect(ctx); err != nil {
		return fmt.Errorf("connecting to %s: %w", s.Address, err)
	}
	var frames, message []byte
	for i := range records {
		message = Append(message[:0], &records[i], s.Enterprise)
		frames = strconv.AppendInt(frames, int64(len(message)), 10)
		frames = append(append(frames, ' '), message...)
	}
	conn := s.conn // Close may have taken it away when ctx ends
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	if _, err := conn.Write(frames); err != nil {
		s.drop()
		return fmt.Errorf("sending to %s: %w", s.Address, errors.Join(err, ctx.Err()))
	}
	return nil
}

// connect makes a connection unless there is one that the server has not closed.
func (s *Sink) connect(ctx context.Context) error {
	if s.conn != nil {
		select {
		case <-s.gone:
			_ = s.Close() // the server has closed it: nothing is lost that was not lost before
		default:
			return nil
		}
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, conn) // a server says nothing, until it closes
		close(gone)
	}()
	s.conn, s.gone = conn, gone
	return nil
}

func (s *Sink) dial(ctx context.Context) (net.Conn, error) {
	if s.TLS == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", s.Address)
	}
	return (&tls.Dialer{Config: s.TLS}).DialContext(ctx, "tcp", s.Address)
}

// drop closes a connection that is of no more use. TLS would first try for 5 s to
// say so to a server that may read nothing.
func (s *Sink) drop() {
	if c, encrypted := s.conn.(*tls.Conn); encrypted {
		_ = c.NetConn().Close()
	}
	_ = s.Close()
}

// Close implements [logforward.Sink].
func (s *Sink) Close() error {
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close()
	<-s.gone
	s.conn = nil
	return err
}

// The facility user-level messages, with the severities informational and error.
const (
	priorityInfo  = 1*8 + 6
	priorityError = 1*8 + 3
)

// Append appends a record as a message of RFC 5424:
//
//	HOSTNAME  the cell's id
//	APP-NAME  log_guid
//	PROCID    source and index, such as WEB/0
//	MSGID     stream
//
// These have only printable ASCII and a bounded length; the structured data
// diego@N has the labels whole, and tags@N the tags, with spaces for control characters. stderr has the severity
// error, everything else is informational. The text is as it was written.
func Append(b []byte, r *logforward.Record, enterprise uint32) []byte {
	priority := priorityInfo
	if r.Labels.Stream == "stderr" {
		priority = priorityError
	}
	procid := r.Labels.Source
	index := ""
	if r.Labels.Index != nil {
		index = strconv.Itoa(*r.Labels.Index)
		procid += "/" + index
	}
	b = fmt.Appendf(b, "<%d>1 ", priority)
	b = r.Time.UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z")
	b = appendField(b, r.CellID, 255)
	b = appendField(b, r.Labels.LogGUID, 48)
	b = appendField(b, procid, 128)
	b = appendField(b, r.Labels.Stream, 32)
	b = append(b, ' ')
	enterprise = cmp.Or(enterprise, ExampleEnterprise)
	b = fmt.Appendf(b, "[diego@%d", enterprise)
	for _, p := range [][2]string{
		{"log_guid", r.Labels.LogGUID}, {"source", r.Labels.Source}, {"domain", r.Labels.Domain},
		{"instance_guid", r.Labels.InstanceGUID}, {"index", index}, {"stream", r.Labels.Stream},
	} {
		if p[1] != "" {
			b = appendParameter(b, p[0], p[1])
		}
	}
	b = append(b, ']')
	if len(r.Labels.Tags) > 0 {
		b = fmt.Appendf(b, "[tags@%d", enterprise)
		for _, name := range slices.Sorted(maps.Keys(r.Labels.Tags)) {
			b = appendParameter(b, name, r.Labels.Tags[name])
		}
		b = append(b, ']')
	}
	text := r.Text
	for bytes.HasPrefix(text, []byte(bom)) && !utf8.Valid(text) {
		text = text[len(bom):] // the mark says that the text is UTF-8, which it is not
	}
	if len(text) > 0 {
		b = append(append(b, ' '), text...)
	}
	return b
}

// bom is the byte order mark in UTF-8.
const bom = "\ufeff"

// appendField appends a field of the header: a space, and 1 to most bytes of
// printable ASCII.
func appendField(b []byte, text string, most int) []byte {
	b = append(b, ' ')
	if text == "" {
		return append(b, '-')
	}
	for _, c := range []byte(text[:min(len(text), most)]) {
		b = append(b, printable(c, ""))
	}
	return b
}

// printable is c, or _ for one that is not printable ASCII or among others.
func printable(c byte, others string) byte {
	if c <= ' ' || c > '~' || strings.IndexByte(others, c) >= 0 {
		return '_'
	}
	return c
}

// appendParameter appends a parameter of structured data. Its name has at most 32
// bytes of printable ASCII, its value is UTF-8. Control characters and line separators in
// the value become spaces: the lengths of messages keep them apart, but a collector that
// splits what it got into lines would take a label with a line end for two messages.
func appendParameter(b []byte, name, value string) []byte {
	b = append(b, ' ')
	if name == "" {
		name = "_"
	}
	for _, c := range []byte(name[:min(len(name), 32)]) {
		b = append(b, printable(c, `=]"`))
	}
	b = append(b, '=', '"')
	for _, c := range strings.ToValidUTF8(value, "\ufffd") {
		switch {
		case c == '"', c == '\\', c == ']':
			b = append(b, '\\', byte(c))
		case unicode.In(c, unicode.Cc, unicode.Zl, unicode.Zp):
			b = append(b, ' ')
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return append(b, '"')
}
