// Package otlp sends lines as log records of OpenTelemetry: OTLP over HTTP, in
// protobuf.
package otlp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/diegosdk/diego/rep/logforward"
)

// A Sink is a logforward.Sink that posts to one address. Both fields are required.
type Sink struct {
	// URL is the whole address, such as https://otel.example:4318/v1/logs.
	URL string
	// Client makes the requests. It must not follow redirects.
	Client *http.Client
}

var _ logforward.Sink = (*Sink)(nil)

// retryable are the statuses after which the same request may succeed, by the
// specification of OTLP. After all others it must not be sent again.
var retryable = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// divisible are the statuses after which a part of the request may succeed: some
// of it is bad, or it is too large.
var divisible = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge}

// maxAnswerBytes is what is read of an answer.
const maxAnswerBytes = 64 << 10

// Send implements [logforward.Sink].
func (s *Sink) Send(ctx context.Context, records []logforward.Record) error {
	body, err := proto.Marshal(Encode(records))
	if err != nil {
		return &logforward.RefusedError{Err: err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := s.Client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes))
	switch {
	case slices.Contains(retryable, answer.StatusCode):
		return fmt.Errorf("%s answers %s", s.URL, answer.Status)
	case answer.StatusCode < 200 || answer.StatusCode > 299: // Loki says 204
		return &logforward.RefusedError{Whole: slices.Contains(divisible, answer.StatusCode), Err: fmt.Errorf("%s answers %s", s.URL, answer.Status)}
	case err != nil:
		return fmt.Errorf("the answer of %s: %w", s.URL, err)
	}
	if rejected, why := partialSuccess(text); rejected > 0 {
		return &logforward.RefusedError{Lines: rejected, Err: fmt.Errorf("%s has rejected %d lines: %s", s.URL, rejected, why)}
	}
	return nil
}

// Close implements [logforward.Sink].
func (s *Sink) Close() error {
	s.Client.CloseIdleConnections()
	return nil
}

// partialSuccess reads how many records an ExportLogsServiceResponse says were
// rejected, and why. An answer that cannot be read rejects nothing. The generated type
// is not used because its package links gRPC.
func partialSuccess(answer []byte) (rejected int64, why string) {
	eachField(answer, func(number protowire.Number, _ uint64, inner []byte) {
		if number != 1 {
			return
		}
		eachField(inner, func(number protowire.Number, n uint64, text []byte) {
			switch number {
			case 1:
				rejected = int64(n)
			case 2:
				why = string(text)
			}
		})
	})
	return rejected, why
}

// eachField calls f with the numbers and the bytes of a message.
func eachField(message []byte, f func(number protowire.Number, n uint64, text []byte)) {
	for len(message) > 0 {
		number, kind, length := protowire.ConsumeTag(message)
		if length < 0 {
			return
		}
		message = message[length:]
		var n uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			n, length = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			text, length = protowire.ConsumeBytes(message)
		default:
			length = protowire.ConsumeFieldValue(number, kind, message)
		}
		if length < 0 {
			return
		}
		message = message[length:]
		f(number, n, text)
	}
}

// Encode returns what is sent for records, which is an ExportLogsServiceRequest
// too. Each container is a resource:
//
//	service.name         log_guid
//	service.namespace    the domain
//	service.instance.id  the instance guid
//	host.name            the cell's id
//	diego.index          the index
//	diego.tag.NAME       the tag NAME
//
// and each line a record with log.iostream, the stream, and diego.source. The body
// is text, or bytes if the line is not UTF-8. stderr has the severity error,
// everything else is informational.
func Encode(records []logforward.Record) *logs.LogsData {
	data := &logs.LogsData{}
	of := map[string]*logs.ScopeLogs{}
	for i := range records {
		r := &records[i]
		scope := of[r.Labels.InstanceGUID]
		if scope == nil {
			scope = &logs.ScopeLogs{Scope: &common.InstrumentationScope{Name: "diego"}}
			of[r.Labels.InstanceGUID] = scope
			data.ResourceLogs = append(data.ResourceLogs, &logs.ResourceLogs{Resource: resourceOf(r), ScopeLogs: []*logs.ScopeLogs{scope}})
		}
		record := &logs.LogRecord{
			TimeUnixNano: uint64(r.Time.UnixNano()), ObservedTimeUnixNano: uint64(r.Time.UnixNano()),
			SeverityNumber: logs.SeverityNumber_SEVERITY_NUMBER_INFO, SeverityText: "INFO", Body: bodyOf(r.Text),
		}
		if r.Labels.Stream == "stderr" {
			record.SeverityNumber, record.SeverityText = logs.SeverityNumber_SEVERITY_NUMBER_ERROR, "ERROR"
		}
		record.Attributes = attributes("log.iostream", r.Labels.Stream, "diego.source", r.Labels.Source)
		scope.LogRecords = append(scope.LogRecords, record)
	}
	return data
}

func resourceOf(r *logforward.Record) *resource.Resource {
	l := &r.Labels
	list := attributes("service.name", l.LogGUID, "service.namespace", l.Domain, "service.instance.id", l.InstanceGUID, "host.name", r.CellID)
	if l.Index != nil {
		list = append(list, &common.KeyValue{Key: "diego.index", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: int64(*l.Index)}}})
	}
	for _, name := range slices.Sorted(maps.Keys(l.Tags)) {
		list = append(list, attributes("diego.tag."+name, l.Tags[name])...)
	}
	return &resource.Resource{Attributes: list}
}

// attributes are pairs of a name and a text; those without a text are left out.
func attributes(pairs ...string) (list []*common.KeyValue) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			list = append(list, &common.KeyValue{Key: valid(pairs[i]), Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: valid(pairs[i+1])}}})
		}
	}
	return list
}

func bodyOf(text []byte) *common.AnyValue {
	if utf8.Valid(text) {
		return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: string(text)}}
	}
	return &common.AnyValue{Value: &common.AnyValue_BytesValue{BytesValue: text}}
}

// valid is text as protobuf takes it.
func valid(text string) string { return strings.ToValidUTF8(text, "\ufffd") }

// NoRedirect is for http.Client.CheckRedirect: a redirect could lead to where
// nothing is encrypted.
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
