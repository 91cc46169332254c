package otlp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/diegosdk/diego/internal/daemon/otlp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/logforward"
)

func texts(list []*common.KeyValue) map[string]any {
	all := map[string]any{}
	for _, a := range list {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			all[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			all[a.Key] = v.IntValue
		}
	}
	return all
}

// An answer is what a receiver says.
type answer struct {
	status int
	body   []byte
}

// receiver keeps what is posted to it, decoded by the library.
func receiver(t *testing.T, a answer) (s *otlp.Sink, got *[]*logs.LogsData) {
	got = new([]*logs.LogsData)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		data := &logs.LogsData{}
		if err := errors.Join(err, proto.Unmarshal(body, data)); err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s: %v", r.Method, r.Header, err)
		}
		*got = append(*got, data)
		if a.status == http.StatusTemporaryRedirect {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body)
	}))
	t.Cleanup(server.Close)
	return &otlp.Sink{URL: server.URL + "/v1/logs", Client: &http.Client{CheckRedirect: otlp.NoRedirect}}, got
}

func TestEachContainerIsAResourceAndEachLineARecord(t *testing.T) {
	at, index := time.Unix(1000, 7), 2
	web := rep.LogLabels{LogGUID: "app-7", Source: "WEB", InstanceGUID: "i-1", Domain: "apps", Index: &index, Stream: "stdout", Tags: map[string]string{"space": "s"}}
	job := rep.LogLabels{LogGUID: "job", InstanceGUID: "i-2", Stream: "stderr"}
	s, got := receiver(t, answer{status: 200})
	if err := s.Send(t.Context(), []logforward.Record{
		{Time: at, CellID: "cell-1", Labels: web, Text: []byte("one")},
		{Time: at, CellID: "cell-1", Labels: job, Text: []byte("\xff")},
		{Time: at.Add(1), CellID: "cell-1", Labels: web, Text: nil},
	}); err != nil {
		t.Fatal(err)
	}
	type record struct {
		Time, Severity uint64
		Attributes     map[string]any
		Body           string
	}
	type resource struct {
		Attributes map[string]any
		Records    []record
	}
	var list []resource
	for _, r := range (*got)[0].ResourceLogs {
		one := resource{Attributes: texts(r.Resource.Attributes)}
		for _, l := range r.ScopeLogs[0].LogRecords {
			body := l.Body.GetStringValue()
			if b := l.Body.GetBytesValue(); b != nil {
				body = "bytes " + string(b)
			}
			one.Records = append(one.Records, record{l.TimeUnixNano, uint64(l.SeverityNumber), texts(l.Attributes), body})
		}
		list = append(list, one)
	}
	of := map[string]any{"log.iostream": "stdout", "diego.source": "WEB"}
	want := []resource{
		{map[string]any{"service.name": "app-7", "service.namespace": "apps", "service.instance.id": "i-1", "host.name": "cell-1", "diego.index": int64(2), "diego.tag.space": "s"},
			[]record{{1000e9 + 7, 9, of, "one"}, {1000e9 + 8, 9, of, ""}}},
		{map[string]any{"service.name": "job", "service.instance.id": "i-2", "host.name": "cell-1"},
			[]record{{1000e9 + 7, 17, map[string]any{"log.iostream": "stderr"}, "bytes \xff"}}},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatAReceiverAnswersDecidesWhetherLinesAreSentAgain(t *testing.T) {
	// partial is an ExportLogsServiceResponse.
	partial := func(rejected uint64, why string) []byte {
		inner := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), rejected)
		inner = protowire.AppendString(protowire.AppendTag(inner, 2, protowire.BytesType), why)
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), inner)
	}
	for name, c := range map[string]struct {
		answer answer
		lost   int64 // -1: none, to be sent again
		says   string
	}{
		"all is well":              {answer{200, nil}, -1, ""},
		"all is well in Loki":      {answer{204, nil}, -1, ""},
		"a warning":                {answer{200, partial(0, "old")}, -1, ""},
		"some are rejected":        {answer{200, partial(2, "too long")}, 2, "rejected 2 lines: too long"},
		"an answer that is none":   {answer{200, []byte("\xff\x0a<html>")}, -1, ""},
		"too many":                 {answer{429, nil}, -1, "429"},
		"a proxy without a server": {answer{502, nil}, -1, "502"},
		"unavailable":              {answer{503, nil}, -1, "503"},
		"a server that is slow":    {answer{504, nil}, -1, "504"},
		"bad data":                 {answer{400, nil}, 0, "400"},
		"too much":                 {answer{413, nil}, 0, "413"},
		"no right":                 {answer{403, nil}, 0, "403"},
		"not found":                {answer{404, nil}, 0, "404"},
		"a broken server":          {answer{500, nil}, 0, "500"},
		"elsewhere":                {answer{307, nil}, 0, "307"},
	} {
		s, got := receiver(t, c.answer)
		err := s.Send(t.Context(), []logforward.Record{{Text: []byte("x")}, {}, {}})
		var refused *logforward.RefusedError
		switch is := errors.As(err, &refused); {
		case (err == nil) != (c.says == ""), err != nil && !strings.Contains(err.Error(), c.says):
			t.Errorf("%s: %v", name, err)
		case is != (c.lost >= 0), is && refused.Lines != c.lost:
			t.Errorf("%s: refused are %+v", name, refused)
		case is && refused.Whole != slices.Contains([]int{400, 413}, c.answer.status):
			t.Errorf("%s: halving would help: %t", name, refused.Whole)
		case len(*got) != 1:
			t.Errorf("%s: %d requests", name, len(*got))
		}
	}
}

func FuzzLabelsWithEveryKindOfByte(f *testing.F) {
	f.Add("cell-1", "app-7", "space", []byte("hello"))
	f.Add("\xff", "", "\x00", []byte("\xff"))
	f.Fuzz(func(t *testing.T, cell, guid, tag string, text []byte) {
		body, err := proto.Marshal(otlp.Encode([]logforward.Record{{CellID: cell, Text: text, Labels: rep.LogLabels{
			LogGUID: guid, Source: tag, InstanceGUID: guid, Tags: map[string]string{tag: guid},
		}}}))
		if err != nil {
			t.Fatal(err)
		}
		data := &logs.LogsData{}
		if err := proto.Unmarshal(body, data); err != nil {
			t.Fatal(err)
		}
		valid := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
		r := data.ResourceLogs[0]
		want := map[string]any{}
		for name, value := range map[string]string{"service.name": guid, "service.instance.id": guid, "host.name": cell, "diego.tag." + valid(tag): guid} {
			if value != "" {
				want[name] = valid(value)
			}
		}
		if diff := cmp.Diff(want, texts(r.Resource.Attributes)); diff != "" {
			t.Error(diff)
		}
		record := r.ScopeLogs[0].LogRecords[0]
		if got := record.Body.GetStringValue() + string(record.Body.GetBytesValue()); got != string(text) {
			t.Errorf("the text is %q, want %q", got, text)
		}
	})
}
