package logfile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor/internal/logfile"
)

func write(t *testing.T, l *logfile.Log, text string) {
	t.Helper()
	if n, err := io.WriteString(l, text); n != len(text) || err != nil {
		t.Fatalf("Write: %d of %d bytes, %v", n, len(text), err)
	}
}

func readAll(t *testing.T, l *logfile.Log, from int64) string {
	t.Helper()
	r := l.Read(context.Background(), from, false)
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAReaderCrossesSegmentsAndBeginsAtTheOldestByte(t *testing.T) {
	dir := t.TempDir()
	l := logfile.New(dir, "stdout", logfile.Options{SegmentBytes: 10, Segments: 3})
	if got := readAll(t, l, 0); got != "" {
		t.Errorf("an empty log holds %q", got)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("an empty log has the files %v", files)
	}
	const text = "0123456789abcdefghijABCDEFGHIJ+-*/"
	for _, part := range []string{text[:3], text[3:27], text[27:]} {
		write(t, l, part)
	}
	if got, want := readAll(t, l, 0), text[10:]; got != want {
		t.Errorf("the log holds %q, want %q", got, want)
	}
	if got, want := readAll(t, l, 25), text[25:]; got != want {
		t.Errorf("from byte 25 the log holds %q, want %q", got, want)
	}
	if files, _ := os.ReadDir(dir); len(files) != 3 {
		t.Errorf("the files are %v, want 3 segments", files)
	}
	if l.Size() != int64(len(text)) {
		t.Errorf("the size is %d, want %d", l.Size(), len(text))
	}
}

func TestAReaderThatFollowsGetsEveryByteUntilTheLogIsClosed(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	l := logfile.New(t.TempDir(), "stdout", logfile.Options{SegmentBytes: 100, Segments: 1000})
	var want strings.Builder
	got := make(chan string)
	go func() {
		r := l.Read(context.Background(), 0, true)
		defer r.Close()
		text, _ := io.ReadAll(r)
		got <- string(text)
	}()
	for range 300 {
		part := strings.Repeat(string(rune('a'+random.IntN(26))), random.IntN(150))
		want.WriteString(part)
		write(t, l, part)
	}
	l.Close()
	if text := <-got; text != want.String() {
		t.Errorf("the reader got %d bytes, want %d", len(text), want.Len())
	}
	if _, err := l.Write([]byte("x")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
}

func TestAReaderThatFollowsEndsWithItsContext(t *testing.T) {
	l := logfile.New(t.TempDir(), "stdout", logfile.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := l.Read(ctx, 0, true)
	defer r.Close()
	if _, err := io.ReadAll(r); !errors.Is(err, context.Canceled) {
		t.Errorf("the reader ended with %v", err)
	}
}

func TestALimitSaysOnceASecondHowMuchItHasDropped(t *testing.T) {
	now := time.Unix(1000, 0)
	limit := logfile.NewLimit(10, func() time.Time { return now })
	var tapped strings.Builder
	l := logfile.New(t.TempDir(), "stdout", logfile.Options{Limit: limit, Tap: func(_ string, p []byte) { tapped.Write(p) }})
	dropped := func(n int) string { return fmt.Sprintf("[%d bytes dropped: more than 10 bytes per second]\n", n) }
	want := ""
	check := func(when string) {
		t.Helper()
		if got := readAll(t, l, 0); got != want || tapped.String() != want {
			t.Fatalf("after %s the log holds %q and passed on %q, want %q", when, got, tapped.String(), want)
		}
	}
	for _, step := range []struct {
		wait        time.Duration
		write, adds string
	}{
		{0, "0123456", "0123456"},
		{0, "789abc", "789\n" + dropped(3)},
		{0, "dropped", ""}, // a line has just said that bytes are dropped
		{500 * time.Millisecond, "12345", "12345"},
		{100 * time.Millisecond, "6789", "6"},
		{400 * time.Millisecond, "ab", "\n" + dropped(7+3) + "ab"},
		{5 * time.Second, "a\n", "a\n"},
		{0, "01234567890\n", "01234567\n" + dropped(4)},
		{0, "x", ""},
	} {
		now = now.Add(step.wait)
		write(t, l, step.write)
		want += step.adds
		check(fmt.Sprintf("%q", step.write))
	}
	l.Close()
	want += dropped(1)
	check("the end")
}

func TestATapReceivesWhatTheDiskDoesNotTake(t *testing.T) {
	var tapped strings.Builder
	l := logfile.New(filepath.Join(t.TempDir(), "none"), "stdout", logfile.Options{Tap: func(_ string, p []byte) { tapped.Write(p) }})
	if _, err := io.WriteString(l, "the disk is full\n"); err == nil {
		t.Error("the write succeeds")
	}
	if got := tapped.String(); got != "the disk is full\n" {
		t.Errorf("passed on is %q", got)
	}
}

func TestTheLargestLimitDropsNothing(t *testing.T) {
	l := logfile.New(t.TempDir(), "stdout", logfile.Options{Limit: logfile.NewLimit(math.MaxInt64, time.Now)})
	write(t, l, "all ")
	write(t, l, "of it")
	if got := readAll(t, l, 0); got != "all of it" {
		t.Errorf("the log holds %q", got)
	}
}

func TestLogsShareALimitAndEachSaysWhatItHasDropped(t *testing.T) {
	now := time.Unix(1000, 0)
	limit := logfile.NewLimit(10, func() time.Time { return now })
	dir := t.TempDir()
	out := logfile.New(dir, "stdout", logfile.Options{Limit: limit})
	err := logfile.New(dir, "stderr", logfile.Options{Limit: limit})
	write(t, out, "01234567")
	write(t, err, "01234567")
	if got, want := readAll(t, out, 0), "01234567"; got != want {
		t.Errorf("stdout holds %q, want %q", got, want)
	}
	if got, want := readAll(t, err, 0), "01\n[6 bytes dropped: more than 10 bytes per second]\n"; got != want {
		t.Errorf("stderr holds %q, want %q", got, want)
	}
}

func TestALogWhoseFilesAreRemovedComesToItsEnd(t *testing.T) {
	dir := t.TempDir()
	l := logfile.New(dir, "stdout", logfile.Options{})
	write(t, l, "text")
	l.Close()
	os.RemoveAll(dir)
	if got := readAll(t, l, 0); got != "" {
		t.Errorf("it holds %q", got)
	}
}

func TestTheEndOfALogIsKeptUnderItsNumbers(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	l := logfile.New(dir, "stdout", logfile.Options{SegmentBytes: 4, Segments: 3})
	write(t, l, "0123456789abcdef")
	other := logfile.New(dir, "stderr", logfile.Options{})
	l.Close()
	other.Close()
	for _, log := range []*logfile.Log{l, other} {
		if err := log.Keep(to, 6); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"stdout": "abcdef", "stderr": "", "std": ""} {
		kept, err := logfile.Open(to, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, kept, 0); got != want || want != "" && readAll(t, kept, 13) != "def" {
			t.Errorf("kept of %s is %q, want %q", name, got, want)
		}
		if _, err := kept.Write([]byte("x")); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("it takes more: %v", err)
		}
	}
	// All segments of a log that nobody has closed.
	left, err := logfile.Open(dir, "stdout")
	if err != nil || readAll(t, left, 0) != "456789abcdef" || left.Size() != 16 {
		t.Errorf("left is %q of %d bytes, %v", readAll(t, left, 0), left.Size(), err)
	}
	if _, err := logfile.Open(dir+"/none", "stdout"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A log is read while its container is deleted.
func TestAReaderGoesOnInWhatIsKeptOfALog(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	l := logfile.New(dir, "stdout", logfile.Options{SegmentBytes: 4, Segments: 3})
	write(t, l, "0123456789abcdef")
	var readers []*logfile.Reader
	for _, from := range []int64{0, 6, 13, 16} {
		r := l.Read(context.Background(), from, true)
		defer r.Close()
		readers = append(readers, r)
	}
	begun := l.Read(context.Background(), 0, true)
	defer begun.Close()
	if _, err := io.ReadFull(begun, make([]byte, 2)); err != nil { // of the oldest segment
		t.Fatal(err)
	}
	l.Close()
	if err := errors.Join(l.Keep(to, 6), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"abcdef", "abcdef", "def", "", "abcdef"} {
		text, err := io.ReadAll(append(readers, begun)[i])
		if err != nil || string(text) != want {
			t.Errorf("reader %d got %q, want %q: %v", i, text, want, err)
		}
	}
}

// pieces reads a log in pieces and says who wrote each.
func pieces(t *testing.T, l *logfile.Log, from int64) (list []string) {
	t.Helper()
	r := l.Read(context.Background(), from, false)
	defer r.Close()
	buffer := make([]byte, 100)
	for {
		n, err := r.Read(buffer)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r.Source()+":"+string(buffer[:n]))
	}
}

func TestAReaderLearnsWhoWroteEachByteAlsoOnceTheLogIsKept(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	l := logfile.New(dir, "stdout", logfile.Options{SegmentBytes: 8, Segments: 3})
	for _, part := range []string{"WEB:0123", "WEB:45", "SIDECAR:6789", ":ab", "WEB:cdef", "WEB:ghij"} {
		source, text, _ := strings.Cut(part, ":")
		if n, err := io.WriteString(l.From(source), text); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	check := func(l *logfile.Log, from int64, want ...string) {
		t.Helper()
		if got := pieces(t, l, from); !slices.Equal(got, want) {
			t.Errorf("from byte %d: %q, want %q", from, got, want)
		}
	}
	check(l, 0, "WEB:012345", "SIDECAR:67", "SIDECAR:89", ":ab", "WEB:cdef", "WEB:ghij")
	check(l, 7, "SIDECAR:7", "SIDECAR:89", ":ab", "WEB:cdef", "WEB:ghij")
	l.Close()
	if err := l.Keep(to, 13); err != nil {
		t.Fatal(err)
	}
	kept, err := logfile.Open(to, "stdout")
	if err != nil {
		t.Fatal(err)
	}
	check(kept, 0, "SIDECAR:789", ":ab", "WEB:cdefghij")
}

func TestSourcesThatChangeWithEveryByteAreBounded(t *testing.T) {
	l := logfile.New(t.TempDir(), "stdout", logfile.Options{})
	const bytes = 5000
	for i := range bytes {
		if _, err := io.WriteString(l.From(fmt.Sprint(i%2)), "x"); err != nil {
			t.Fatal(err)
		}
	}
	got := pieces(t, l, 0)
	if len(got) != 4000/100+1000 || got[0] != ":"+strings.Repeat("x", 100) || got[len(got)-1] != "1:x" {
		t.Errorf("%d pieces, the first %.20q, the last %q", len(got), got[0], got[len(got)-1])
	}
}

func TestWhatIsWrittenLaterKeepsItsPlace(t *testing.T) {
	l := logfile.New(t.TempDir(), "stdout", logfile.Options{})
	a, b := l.From("A"), l.From("B")
	a.WriteLater("one")
	if l.Size() != 0 || !l.Waits() {
		t.Error("it does not wait")
	}
	if _, err := b.Write([]byte("two")); err != nil {
		t.Fatal(err)
	}
	a.WriteLater("three")
	l.Flush()
	if l.Waits() {
		t.Error("something waits after a flush")
	}
	b.WriteLater("four")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	a.WriteLater("five")
	l.Flush()
	if got, want := pieces(t, l, 0), []string{"A:one", "B:two", "A:three", "B:four"}; !slices.Equal(got, want) || l.Waits() {
		t.Errorf("it holds %q, want %q", got, want)
	}
}

func TestWhatIsWrittenLaterIsBounded(t *testing.T) {
	l := logfile.New(t.TempDir(), "stdout", logfile.Options{})
	a, long := l.From("A"), strings.Repeat("x", 20<<10)
	for _, text := range []string{long, long, "y"} {
		a.WriteLater(text)
	}
	l.Flush()
	a.WriteLater("z")
	l.Flush()
	text, err := io.ReadAll(l.Read(t.Context(), 0, false))
	want := strings.Repeat("x", 32<<10) + fmt.Sprintf("\n[%d bytes dropped: more than 32 KiB of messages waited to be written]\nz", 8<<10+1)
	if err != nil || string(text) != want {
		t.Errorf("%d bytes that end with %.100q (%v), want %d", len(text), text[max(0, len(text)-100):], err, len(want))
	}
}

// Tenants choose the names of sources.
func TestLongNamesOfSourcesAreCut(t *testing.T) {
	to := t.TempDir()
	l := logfile.New(t.TempDir(), "stdout", logfile.Options{})
	names := []string{strings.Repeat("ä", 100_000), "b" + strings.Repeat("ä", 100_000)}
	for i := range 2000 {
		if _, err := io.WriteString(l.From(names[i%2]), "x"); err != nil {
			t.Fatal(err)
		}
	}
	want := "b" + strings.Repeat("ä", 127) + ":x"
	if got := pieces(t, l, 1999); len(got) != 1 || got[0] != want {
		t.Errorf("the last piece is %q", got)
	}
	l.Close()
	if err := l.Keep(to, 100); err != nil {
		t.Fatal(err)
	}
	kept, err := logfile.Open(to, "stdout")
	if err != nil {
		t.Fatal(err)
	}
	if got := pieces(t, kept, 0); len(got) != 100 || got[99] != want {
		t.Errorf("%d pieces are kept", len(got))
	}
	files, err := filepath.Glob(filepath.Join(to, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Size() > 100*300 {
		t.Errorf("the names of 100 changes take %d bytes, %v", info.Size(), err)
	}
}

func TestALogIsPreparedBeforeItsFirstByteAndUntilThatSucceeds(t *testing.T) {
	dir, full := filepath.Join(t.TempDir(), "logs"), errors.New("the disk is full")
	calls := 0
	l := logfile.New(dir, "stdout", logfile.Options{SegmentBytes: 4, Prepare: func() error {
		calls++
		if calls < 3 {
			return full
		}
		return os.Mkdir(dir, 0o700)
	}})
	for range 2 {
		if _, err := l.Write([]byte("lost")); !errors.Is(err, full) {
			t.Errorf("the error is %v", err)
		}
	}
	for range 3 {
		if _, err := l.Write([]byte("kept")); err != nil {
			t.Error(err)
		}
	}
	if calls != 3 || l.Size() != 12 {
		t.Errorf("it was prepared %d times and has %d bytes", calls, l.Size())
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
