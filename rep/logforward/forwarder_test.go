package logforward_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/logforward"
)

// sink answers with answer, and keeps what was sent without an error.
type sink struct {
	answer func(ctx context.Context) error
	judge  func([]logforward.Record) error // after answer

	mu       sync.Mutex
	attempts int
	records  []logforward.Record
	closed   int
}

func (s *sink) Send(ctx context.Context, records []logforward.Record) error {
	s.mu.Lock()
	s.attempts++
	answer := s.answer
	s.mu.Unlock()
	if answer != nil {
		if err := answer(ctx); err != nil {
			return err
		}
	}
	if s.judge != nil {
		if err := s.judge(records); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, records...)
	return nil
}

func (s *sink) Close() error {
	s.closed++
	return nil
}

func (s *sink) answers(answer func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *sink) texts() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		list = append(list, string(r.Text))
	}
	return list
}

func (s *sink) tried() int {
	synctest.Wait() // what is due now is done
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempts
}

// figures are counters.
type figures struct {
	auction.NoMetrics
	mu sync.Mutex
	of map[string]int64
}

func (f *figures) Count(name string, n int64, labels ...auction.Label) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[fmt.Sprint(name, labels)] += n
}

func (f *figures) get(name, destination string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[fmt.Sprint(name, []auction.Label{{Name: "destination", Value: destination}})]
}

// A world is a forwarder that runs in virtual time.
type world struct {
	*logforward.Forwarder
	figures *figures
	log     bytes.Buffer
	cancel  context.CancelFunc
	ended   chan struct{}
}

func run(t *testing.T, buffer int64, sinks map[string]*sink) *world {
	w := &world{figures: &figures{of: map[string]int64{}}, ended: make(chan struct{})}
	o := logforward.Options{CellID: "cell-1", BufferBytes: buffer, Metrics: w.figures, Logger: slog.New(slog.NewTextHandler(&w.log, nil))}
	for name, s := range sinks {
		o.Destinations = append(o.Destinations, logforward.Destination{Name: name, Sink: s})
	}
	f, err := logforward.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Forwarder = f
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	go func() {
		f.Run(ctx)
		close(w.ended)
	}()
	return w
}

func (w *world) lines(texts ...string) {
	for _, text := range texts {
		w.Line(manager.LogLine{Time: time.Now(), GUID: "i-1", Stream: manager.Stdout, Source: "WEB", Text: []byte(text)})
	}
}

// end stops the forwarder and returns how long that has taken.
func (w *world) end() time.Duration {
	begun := time.Now()
	w.cancel()
	<-w.ended
	return time.Since(begun)
}

func count(from, to int) (list []string) {
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprintf("%04d", i))
	}
	return list
}

var errAway = errors.New("nobody is there")

func away(context.Context) error { return errAway }

func TestLinesArriveInOrderWithTheLabelsOfTheirContainer(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		s := &sink{}
		w := run(t, 0, map[string]*sink{"one": s})
		tags := map[string]string{
			executor.TagLifecycle: executor.LifecycleLRP, executor.TagProcessGUID: "web", executor.TagProcessIndex: "2",
			executor.TagDomain: "apps", executor.TagMetricTags: `{"n":{"dynamic":"INDEX"},"s":{"static":"x"}}`,
		}
		for i, source := range []string{"WEB", "SIDE", ""} {
			w.Line(manager.LogLine{Time: time.Unix(int64(i), 0), GUID: "i-1", Stream: manager.Stderr, Source: source, Text: []byte("to " + source),
				Owner: manager.LogOwner{LogGUID: "app-7", MetricsGUID: "m", Tags: tags}})
		}
		w.Line(manager.LogLine{GUID: "i-2", Stream: manager.Stdout})
		w.end()
		var got []string
		for _, r := range s.records {
			index := "none"
			if r.Labels.Index != nil {
				index = fmt.Sprint(*r.Labels.Index)
			}
			r.Labels.Index = nil
			got = append(got, fmt.Sprintf("%d %s %s %s %+v", r.Time.Unix(), r.CellID, r.Text, index, r.Labels))
		}
		var want []string
		for i, source := range []string{"WEB", "SIDE", ""} {
			want = append(want, fmt.Sprintf("%d cell-1 to %s 2 %+v", i, source, rep.LogLabels{
				LogGUID: "app-7", Source: source, InstanceGUID: "i-1", Domain: "apps", Stream: "stderr",
				Tags: map[string]string{"source_id": "m", "n": "2", "s": "x"},
			}))
		}
		want = append(want, fmt.Sprintf("%d cell-1  none %+v", time.Time{}.Unix(), rep.LogLabels{InstanceGUID: "i-2", Stream: "stdout"}))
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if s.closed != 1 || w.figures.get("log_lines_forwarded_total", "one") != 4 || w.log.Len() > 0 {
			t.Errorf("closed %d times; %v; the log says %s", s.closed, w.figures.of, &w.log)
		}
	})
}

// A definition may have megabytes of them, and each line is sent with its labels.
func TestLabelsAreCutToABoundedLength(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		s := &sink{}
		w := run(t, 0, map[string]*sink{"one": s})
		long := strings.Repeat("x", 1<<20)
		tags := map[string]string{
			executor.TagLifecycle: executor.LifecycleLRP, executor.TagProcessGUID: "web", executor.TagProcessIndex: "2",
			executor.TagDomain: long, executor.TagMetricTags: fmt.Sprintf(`{"a":{"static":"x"},"b":{"static":%q},"c":{"static":"x"}}`, long),
		}
		w.Line(manager.LogLine{GUID: "i-1", Stream: manager.Stdout, Source: long, Text: []byte("one"), Owner: manager.LogOwner{LogGUID: long, MetricsGUID: "m", Tags: tags}})
		w.end()
		l := s.records[0].Labels
		if n := max(len(l.LogGUID), len(l.Source), len(l.Domain)); n != 1<<10 {
			t.Errorf("the longest label has %d bytes", n)
		}
		if len(l.Tags) != 1 || l.Tags["a"] != "x" {
			t.Errorf("there are %d tags: %.99q", len(l.Tags), l.Tags)
		}
	})
}

func TestADestinationThatWasAwayGetsTheNewestLinesAndHowManyItMissed(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		s, other := &sink{answer: away}, &sink{}
		w := run(t, 10*204+int64(len("i-1WEB")), map[string]*sink{"one": s, "two": other}) // and the labels once
		w.lines("first")
		synctest.Wait() // it is being sent, and so not in the buffer
		for _, line := range count(0, 25) {
			w.lines(line)
			synctest.Wait() // the other destination keeps up
		}
		time.Sleep(10 * time.Minute)
		if n := s.tried(); n < 20 || n > 60 {
			t.Errorf("%d attempts in 10 min: they become as rare as one in 15 to 45 s", n)
		}
		if got := other.texts(); !slices.Equal(got, append([]string{"first"}, count(0, 25)...)) {
			t.Errorf("the other destination got %q", got)
		}
		s.answers(nil)
		time.Sleep(time.Minute)
		w.lines("last")
		w.end()
		want := slices.Concat([]string{"first", "[15 lines of containers of cell cell-1 dropped: one did not take them]"}, count(15, 25), []string{"last"})
		if got := s.texts(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if sent, dropped := w.figures.get("log_lines_forwarded_total", "one"), w.figures.get("log_lines_dropped_total", "one"); sent != 12 || dropped != 15 {
			t.Errorf("%d forwarded, %d dropped", sent, dropped)
		}
		if text := w.log.String(); strings.Count(text, "cannot be forwarded") != 1 || strings.Count(text, "forwarded again") != 1 || !strings.Contains(text, errAway.Error()) {
			t.Errorf("the log says %s", text)
		}
	})
}

func TestAContainerThatFloodsADestinationLosesItsOwnLines(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		s := &sink{answer: away}
		w := run(t, 100*210, map[string]*sink{"one": s})
		w.lines("first")
		synctest.Wait() // it is being sent, and so not in the buffer
		write := func(guid, text string) {
			w.Line(manager.LogLine{GUID: guid, Stream: manager.Stdout, Text: []byte(text)})
		}
		var own []string
		for i := range 10 {
			own = append(own, fmt.Sprint("own ", i))
			write("quiet", own[i])
			for range 1000 {
				write("flood-1", "more")
				write("flood-2", "more")
			}
		}
		s.answers(nil)
		time.Sleep(time.Minute)
		w.end()
		var got []string
		for _, text := range s.texts() {
			if strings.HasPrefix(text, "own") {
				got = append(got, text)
			}
		}
		if !slices.Equal(got, own) {
			t.Errorf("of a container that writes little came %q", got)
		}
		if n := len(s.texts()); n < 90 || n > 110 {
			t.Errorf("%d lines came, want about as many as fit", n)
		}
	})
}

// Containers that have ended may leave more queues than are looked at for each line.
func TestOfVeryManyContainersADestinationLosesTheOldestLines(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		const room, all = 2000, 5000 // lines of 205 bytes
		s := &sink{answer: away}
		w := run(t, room*205, map[string]*sink{"one": s})
		w.lines("first")
		synctest.Wait() // it is being sent, and so not in the buffer
		var want []string
		for i := range all {
			text := fmt.Sprintf("%05d", i)
			w.Line(manager.LogLine{GUID: fmt.Sprint("container-", i), Stream: manager.Stdout, Text: []byte(text)})
			want = append(want, text)
		}
		s.answers(nil)
		time.Sleep(time.Minute)
		w.end()
		var got []string
		for _, text := range s.texts() {
			if len(text) == 5 && text != "first" {
				got = append(got, text)
			}
		}
		if n := len(got); n < room/2 || n > room || !slices.Equal(got, want[all-n:]) {
			t.Errorf("%d lines came, want as many of the newest as fit, in order", n)
		}
	})
}

func TestADestinationThatHangsHoldsUpNobody(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		s, other := &sink{answer: hangs}, &sink{}
		w := run(t, 0, map[string]*sink{"one": s, "two": other})
		begun := time.Now()
		w.lines(count(0, 2000)...)
		if passed := time.Since(begun); passed > 0 {
			t.Errorf("a container has waited %v", passed)
		}
		synctest.Wait()
		if got := other.texts(); !slices.Equal(got, count(0, 2000)) {
			t.Errorf("the other destination got %d lines", len(got))
		}
		time.Sleep(25 * time.Second)
		if n := s.tried(); n != 3 {
			t.Errorf("%d attempts in 25 s, each of which may take 10 s", n)
		}
		s.answers(nil)
		time.Sleep(time.Minute)
		if got := s.texts(); !slices.Equal(got, count(0, 2000)) {
			t.Errorf("it got %d lines", len(got))
		}
		w.end()
	})
}

func TestLinesThatAreRefusedAreCountedAndNotSentAgain(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		refuses := func(lines int64) func(context.Context) error {
			return func(context.Context) error {
				time.Sleep(time.Second) // meanwhile lines come that are one batch
				return fmt.Errorf("posting: %w", &logforward.RefusedError{Lines: lines, Err: errors.New("status 400")})
			}
		}
		s := &sink{answer: refuses(0)}
		w := run(t, 0, map[string]*sink{"one": s})
		w.lines("first")
		synctest.Wait()
		w.lines(count(0, 699)...) // two batches
		time.Sleep(time.Hour)
		if n := s.tried(); n != 3 {
			t.Errorf("%d attempts", n)
		}
		s.answers(refuses(3)) // the others of a batch have arrived
		w.lines("alone")
		synctest.Wait()
		w.lines(count(0, 10)...)
		time.Sleep(time.Hour)
		synctest.Wait()
		s.answers(nil)
		w.lines("last")
		w.end()
		if got, want := s.texts(), []string{"[3 lines of containers of cell cell-1 dropped: one did not take them]", "last"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if sent, dropped := w.figures.get("log_lines_forwarded_total", "one"), w.figures.get("log_lines_dropped_total", "one"); sent != 8 || dropped != 704 {
			t.Errorf("%d forwarded, %d dropped", sent, dropped)
		}
		if text := w.log.String(); !strings.Contains(text, "refused and are dropped") || strings.Contains(text, "wait in the buffer") {
			t.Errorf("the log says %s", text)
		}
	})
}

// As a collector does that judges requests as a whole.
func TestOnlyTheLinesThatADestinationCannotTakeAreLost(t *testing.T) {
	for name, c := range map[string]struct {
		bad      []int // lines of 500
		attempts int   // at most
		lost     int64
	}{
		"none":               {nil, 1, 0},
		"the first":          {[]int{0}, 20, 1},
		"the last":           {[]int{499}, 20, 1},
		"two":                {[]int{100, 400}, 40, 2},
		"more than it seeks": {count500(), 65, 500},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.Bubble(t, func(t *testing.T) {
				s := &sink{}
				s.judge = func(records []logforward.Record) error {
					for _, r := range records {
						if strings.HasPrefix(string(r.Text), "bad") {
							return &logforward.RefusedError{Whole: true, Err: errors.New("status 400")}
						}
					}
					return nil
				}
				s.answers(func(context.Context) error { time.Sleep(time.Second); return nil }) // meanwhile lines come that are one batch
				w := run(t, 0, map[string]*sink{"one": s})
				w.lines("first")
				synctest.Wait()
				texts := count(0, 500)
				for _, i := range c.bad {
					texts[i] = "bad"
				}
				w.lines(texts...)
				time.Sleep(time.Hour)
				if n := s.tried() - 1; n > c.attempts {
					t.Errorf("%d attempts, want at most %d", n, c.attempts)
				}
				want := slices.DeleteFunc(slices.Concat([]string{"first"}, texts), func(text string) bool { return text == "bad" })
				if got := s.texts(); !slices.Equal(got, want) {
					t.Errorf("%d lines came, want %d in order", len(got), len(want))
				}
				if sent, dropped := w.figures.get("log_lines_forwarded_total", "one"), w.figures.get("log_lines_dropped_total", "one"); sent != 501-c.lost || dropped != c.lost {
					t.Errorf("%d forwarded, %d dropped", sent, dropped)
				}
				if n := strings.Count(w.log.String(), "refused and are dropped"); n != min(1, len(c.bad)) {
					t.Errorf("the log says %s", w.log.String())
				}
				w.end()
			})
		})
	}
}

func count500() (all []int) {
	for i := range 500 {
		all = append(all, i)
	}
	return all
}

// Some definitions have megabytes of labels, and containers come and go.
func TestLabelsOfWaitingLinesAreBounded(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		s := &sink{answer: away}
		const buffer = 64 << 10
		w := run(t, buffer, map[string]*sink{"one": s})
		w.lines("first")
		synctest.Wait() // it is being sent, and so not in the buffer
		tag := strings.Repeat("x", 3<<10)
		const containers = 100
		for i := range containers {
			owner := manager.LogOwner{Tags: map[string]string{executor.TagMetricTags: fmt.Sprintf(`{"a":{"static":%q}}`, tag)}}
			for range 2 {
				w.Line(manager.LogLine{GUID: fmt.Sprintf("c-%02d", i), Stream: manager.Stdout, Owner: owner, Text: []byte("line")})
			}
		}
		dropped := w.figures.get("log_lines_dropped_total", "one")
		each := int64(2*204 + len("c-00") + len("a") + len(tag))
		if want := 2 * (containers - buffer/each); dropped < want-1 || dropped > want+1 {
			t.Errorf("%d lines are dropped, want %d: the labels of a container count once", dropped, want)
		}
		s.answers(nil)
		time.Sleep(time.Minute)
		w.lines("last")
		w.end()
		texts := s.texts()
		if last := s.records[len(texts)-2].Labels; last.InstanceGUID != "c-99" || last.Tags["a"] != tag {
			t.Errorf("the last line of a container has %.99v", last)
		}
	})
}

func TestTheEndWaitsForWhatIsLeftForABoundedTime(t *testing.T) {
	for name, c := range map[string]struct {
		returns time.Duration // after the end
		lost    int64
	}{"it is back in time": {3 * time.Second, 0}, "it is not": {time.Hour, 30}} {
		t.Run(name, func(t *testing.T) {
			testenv.Bubble(t, func(t *testing.T) {
				s := &sink{answer: away}
				w := run(t, 0, map[string]*sink{"one": s})
				w.lines(count(0, 10)...)
				time.Sleep(10 * time.Minute) // the pauses are long by now
				w.lines(count(10, 30)...)
				time.AfterFunc(c.returns, func() { s.answers(nil) })
				if took := w.end(); took > logforward.DefaultFlushTimeout || took < min(c.returns, logforward.DefaultFlushTimeout) {
					t.Errorf("it took %v", took)
				}
				if lost := w.figures.get("log_lines_dropped_total", "one"); lost != c.lost || int64(len(s.texts())) != 30-c.lost || s.closed != 1 {
					t.Errorf("%d lines arrived, %d were lost, closed %d times; the log says %s", len(s.texts()), lost, s.closed, &w.log)
				}
				if told := strings.Contains(w.log.String(), "lines=30"); told != (c.lost > 0) {
					t.Errorf("the log says %s", &w.log)
				}
			})
		})
	}
}

func TestAForwarderThatCannotWorkIsRefused(t *testing.T) {
	d := logforward.Destination{Name: "one", Sink: &sink{}}
	for name, o := range map[string]logforward.Options{
		"cell_id":              {Destinations: []logforward.Destination{d}},
		"destinations":         {CellID: "c"},
		"destinations[1].name": {CellID: "c", Destinations: []logforward.Destination{d, d}},
		"destinations[0].sink": {CellID: "c", Destinations: []logforward.Destination{{Name: "one"}}},
		"buffer_bytes":         {CellID: "c", Destinations: []logforward.Destination{d}, BufferBytes: -1},
		"flush_timeout":        {CellID: "c", Destinations: []logforward.Destination{d}, FlushTimeout: -1},
	} {
		if _, err := logforward.New(o); !errors.Is(err, executor.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
