package lrp_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
)

// reflected is an ActualLRP as encoding/json alone reads and writes it.
type reflected struct {
	*bare
	Since        executor.Timestamp `json:"since"`
	RunningSince executor.Timestamp `json:"running_since,omitzero"`
	ExpiresAt    executor.Timestamp `json:"expires_at,omitzero"`
}

type bare lrp.ActualLRP

// writesLikeReflection checks that r is written as encoding/json would.
func writesLikeReflection(t *testing.T, r lrp.ActualLRP) {
	t.Helper()
	want, failure := json.Marshal(reflected{(*bare)(&r), executor.Timestamp(r.Since), executor.Timestamp(r.RunningSince), executor.Timestamp(r.ExpiresAt)})
	got, err := json.Marshal(r)
	if (err == nil) != (failure == nil) || string(got) != string(want) {
		t.Fatalf("got  %s, %v\nwant %s, %v", got, err, want, failure)
	}
	appended, err := r.AppendJSON([]byte("before "))
	if (err == nil) != (failure == nil) || string(appended) != "before "+string(want) {
		t.Fatalf("appended %s, %v\nwant %s, %v", appended, err, want, failure)
	}
	if err == nil {
		readsLikeReflection(t, want)
	}
}

// readsLikeReflection checks that text is read as encoding/json would.
func readsLikeReflection(t *testing.T, text []byte) {
	t.Helper()
	var fields bare
	in := reflected{bare: &fields}
	failure := json.Unmarshal(text, &in)
	if failure == nil {
		_, failure = fields.State.MarshalText()
	}
	var got lrp.ActualLRP
	if err := got.UnmarshalJSON(text); (err == nil) != (failure == nil) {
		t.Fatalf("%s: got %v, want %v", text, err, failure)
	} else if err != nil {
		return
	}
	fields.Since, fields.RunningSince, fields.ExpiresAt = time.Time(in.Since), time.Time(in.RunningSince), time.Time(in.ExpiresAt)
	if want := lrp.ActualLRP(fields); !reflect.DeepEqual(got, want) {
		t.Fatalf("%s\ngot  %#v\nwant %#v", text, got, want)
	}
}

// filled has text, number and ports wherever there is room for them.
func filled(text string, number int64, ports []lrp.PortMapping, state lrp.State, presence lrp.Presence, reason lrp.PlacementReason) lrp.ActualLRP {
	return lrp.ActualLRP{
		Key:         lrp.Key{ProcessGUID: text, DefinitionID: text, Index: int(number), Domain: text},
		InstanceKey: lrp.InstanceKey{InstanceGUID: text, CellID: text},
		NetInfo:     lrp.NetInfo{Address: text, Ports: ports, InstanceAddress: text},
		State:       state, Presence: presence, CrashCount: int(number), CrashReason: text,
		PlacementError: lrp.PlacementError{Reason: reason, Detail: text},
		Since:          executor.Instant(number), RunningSince: executor.Instant(number), ExpiresAt: executor.Instant(number),
		Routable: number%2 == 0, Zone: text,
		ModificationTag: lrp.ModificationTag{Epoch: number, Index: number},
	}
}

var oddTexts = []string{
	"", "web", "a b~", `"`, `\`, "/", "<", ">", "&", "a<b>&c", "\x00", "\n", "\x1f", "\x7f", "é", "日本語", "🙀", "\u2028\u2029", "\ufeff",
	"\xff", "a\xc3", "\xed\xa0\x80", strings.Repeat("x", 2000), strings.Repeat("é", 500),
}

func TestAnActualLRPIsReadAndWrittenAsByReflection(t *testing.T) {
	allPorts := [][]lrp.PortMapping{nil, {}, {{ContainerPort: 8080, HostPort: 60001}}, {{ContainerPort: math.MaxUint16}, {HostPort: 1}}}
	numbers := []int64{0, 1, 7, 10, math.MaxInt64, -1, math.MinInt64, time.Date(2026, 1, 1, 0, 0, 0, 1, time.UTC).UnixNano()}
	for _, text := range oddTexts {
		for _, number := range numbers {
			for i := range 7 {
				writesLikeReflection(t, filled(text, number, allPorts[i%4], lrp.State(i%6), lrp.Presence(i%4), lrp.PlacementReason(i)))
			}
		}
	}
	for _, at := range []time.Time{
		{}, time.Date(2026, 1, 1, 0, 0, 0, 120_000_000, time.FixedZone("west", -5*3600)), time.Date(9999, 12, 31, 23, 59, 59, 1, time.UTC),
		time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		for i := range 3 {
			r := filled("web", 1, nil, lrp.Running, lrp.Ordinary, lrp.Placed)
			*[]*time.Time{&r.Since, &r.RunningSince, &r.ExpiresAt}[i] = at
			writesLikeReflection(t, r)
		}
	}
}

func TestWhatIsWrittenDifferentlyIsReadAsByReflection(t *testing.T) {
	whole, err := json.Marshal(filled("text", 12, []lrp.PortMapping{{ContainerPort: 1, HostPort: 2}, {ContainerPort: 3, HostPort: 4}}, lrp.Running, lrp.Suspect, lrp.NoCompatibleCells))
	if err != nil {
		t.Fatal(err)
	}
	readsLikeReflection(t, whole)
	pieces := []string{
		"", " ", ",", `"`, "{", "}", "[", "]", "0", "-", "-0", "00", "0.0", "1e1", "65535", "65536", "9223372036854775807", "9223372036854775808",
		"null", "true", "false", `"x"`, `"RUNNING"`, `\u0041`, `\`, "é", "\xff", "\n", "<", "{}", "[]", `"index":3,`, `"INDEX":3,`, `"unknown":[{}],`, `,"zone":"again"`,
		"9", "Z", "T", ".", ":", "z", "+00:00", "-24:00", "1970-01-01T00:00:00Z", `"since":12`, `"since":null`,
	}
	step := 1
	if testenv.Race {
		step = 10
	}
	for at := 0; at <= len(whole); at += step {
		for _, piece := range pieces {
			for _, cut := range []int{0, 1, 2, len(piece)} {
				if rest := at + cut; rest <= len(whole) {
					readsLikeReflection(t, []byte(string(whole[:at])+piece+string(whole[rest:])))
				}
			}
		}
	}
}

func FuzzActualLRPText(f *testing.F) {
	f.Add("web", int64(1), uint16(1), uint16(2), uint8(3), uint8(0), uint8(0))
	f.Add("a\"<\u2028\xff", int64(-1), uint16(0), uint16(65535), uint8(1), uint8(2), uint8(1))
	f.Fuzz(func(t *testing.T, text string, number int64, from, to uint16, state, presence, reason uint8) {
		var ports []lrp.PortMapping
		for range from % 4 {
			ports = append(ports, lrp.PortMapping{ContainerPort: from, HostPort: to})
		}
		writesLikeReflection(t, filled(text, number, ports, lrp.State(state), lrp.Presence(presence), lrp.PlacementReason(reason)))
	})
}

// BenchmarkActualLRPJSON writes and reads a RUNNING record as a list's two
// sides do.
func BenchmarkActualLRPJSON(b *testing.B) {
	r := filled("0f8fad5b-d9cb-469f-a165-70867728950e", epoch.UnixNano(), []lrp.PortMapping{{ContainerPort: 8080, HostPort: 61001}}, lrp.Running, lrp.Ordinary, lrp.Placed)
	text, err := r.AppendJSON(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			text, _ = r.AppendJSON(text[:0])
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := r.UnmarshalJSON(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reflection", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var fields bare
			if err := json.Unmarshal(text, &reflected{bare: &fields}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
