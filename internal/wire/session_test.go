package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/storage"
)

// A talk is what a server does in a session.
type talk func(ctx context.Context, in words, s executor.Streams) (words, error)

func talkWith(t *testing.T, s *Server, serve talk) (*Session[*echo, words, words], *httptest.Server) {
	t.Helper()
	e := &Session[*echo, words, words]{Info: info("talk", Never), Serve: func(ctx context.Context, _ *echo, in words, s executor.Streams) (words, error) {
		return serve(ctx, in, s)
	}}
	mux := http.NewServeMux()
	Register(s, mux, new(echo), []Endpoint[*echo]{e})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return e, server
}

// upgraded is a connection on which a session has begun.
func upgraded(t *testing.T, server *httptest.Server) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /v1/talk HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %s\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", sessionProtocol)
	r := bufio.NewReader(conn)
	answer, err := http.ReadResponse(r, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", answer, err)
	}
	return conn, r
}

func frame(kind byte, content string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(content))), content...)
}

func TestASessionCarriesBothWaysWhatItGetsAndAnswers(t *testing.T) {
	input := bytes.Repeat([]byte("0123456789\x00\xff\n\x1b"), 10<<20/14)
	e, server := talkWith(t, newServer(), func(ctx context.Context, in words, s executor.Streams) (words, error) {
		c := <-s.Control
		fmt.Fprintf(s.Stderr, "%s %d %s", in.Text, c.Resize.Columns, c.Signal)
		_, err := io.Copy(s.Stdout, s.Stdin)
		return words{Text: "done"}, err
	})
	control := make(chan executor.SessionControl, 1)
	control <- executor.SessionControl{Resize: &executor.TerminalSize{Columns: 80}, Signal: executor.SignalInterrupt}
	var out, errs bytes.Buffer
	answer, err := e.Do(t.Context(), newTestClient(server.URL), words{Text: "hello"}, executor.Streams{
		Stdin: bytes.NewReader(input), Stdout: &out, Stderr: &errs, Control: control,
	})
	if err != nil || answer.Text != "done" {
		t.Errorf("the answer is %+v, %v", answer, err)
	}
	if !bytes.Equal(out.Bytes(), input) || errs.String() != "hello 80 INT" {
		t.Errorf("%d of %d bytes came, and %q", out.Len(), len(input), &errs)
	}
	if answer, err := e.Do(t.Context(), newTestClient(server.URL), words{}, executor.Streams{Control: func() chan executor.SessionControl {
		c := make(chan executor.SessionControl, 1)
		c <- executor.SessionControl{Resize: new(executor.TerminalSize)}
		return c
	}()}); err != nil || answer.Text != "done" {
		t.Errorf("without streams: %+v, %v", answer, err)
	}
}

func TestAProblemEndsASession(t *testing.T) {
	e, server := talkWith(t, newServer(), func(_ context.Context, _ words, s executor.Streams) (words, error) {
		fmt.Fprint(s.Stdout, "so far")
		return words{}, fmt.Errorf("it broke: %w", errSpoilt)
	})
	var out bytes.Buffer
	forever, _ := io.Pipe()
	_, err := e.Do(t.Context(), newTestClient(server.URL), words{}, executor.Streams{Stdin: forever, Stdout: &out})
	if !errors.Is(err, errSpoilt) || !strings.Contains(err.Error(), "it broke") || out.String() != "so far" {
		t.Errorf("%v after %q", err, &out)
	}
}

func TestASenderIsNeverFarAheadOfASlowReader(t *testing.T) {
	const total = 20 * windowBytes
	var sent, most atomic.Int64
	e, server := talkWith(t, newServer(), func(_ context.Context, _ words, s executor.Streams) (words, error) {
		piece := make([]byte, 1000)
		for n := 0; n < total; n += len(piece) {
			sent.Add(int64(len(piece)))
			if _, err := s.Stdout.Write(piece); err != nil {
				return words{}, err
			}
		}
		return words{}, nil
	})
	taken := int64(0)
	_, err := e.Do(t.Context(), newTestClient(server.URL), words{}, executor.Streams{Stdout: writerFunc(func(b []byte) (int, error) {
		most.Store(max(most.Load(), sent.Load()-taken))
		taken += int64(len(b))
		return len(b), nil
	})})
	if err != nil || taken < total {
		t.Errorf("%d bytes came, %v", taken, err)
	}
	if most.Load() > 2*windowBytes {
		t.Errorf("the sender was %d bytes ahead", most.Load())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestASessionEndsWithEitherSide(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	serve := func(ctx context.Context, _ words, s executor.Streams) (words, error) {
		began <- struct{}{}
		_, err := io.Copy(io.Discard, s.Stdin)
		<-ctx.Done()
		ended <- err
		return words{}, context.Cause(ctx)
	}
	e, server := talkWith(t, newServer(), serve)
	forever, _ := io.Pipe()

	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user has enough")
	go func() {
		<-began
		cancel(why)
	}()
	if _, err := e.Do(ctx, newTestClient(server.URL), words{}, executor.Streams{Stdin: forever}); !errors.Is(err, why) {
		t.Errorf("after its caller's end: %v", err)
	}
	if err := <-ended; !errors.Is(err, errClientGone) {
		t.Errorf("the server heard %v", err)
	}

	conn, _ := upgraded(t, server)
	<-began
	conn.Close()
	if err := <-ended; !errors.Is(err, errClientGone) {
		t.Errorf("after the connection's end the server heard %v", err)
	}

	// Input that cannot be read is not the end of the input.
	broken, source := io.Pipe()
	spoilt := errors.New("the disk is broken")
	source.CloseWithError(spoilt)
	if _, err := e.Do(t.Context(), newTestClient(server.URL), words{}, executor.Streams{Stdin: broken}); !errors.Is(err, spoilt) {
		t.Errorf("with input that cannot be read: %v", err)
	}
	<-began
	<-ended

	// Nobody to write to.
	loud, server := talkWith(t, newServer(), func(ctx context.Context, _ words, s executor.Streams) (words, error) {
		for {
			if _, err := s.Stdout.Write(make([]byte, 1000)); err != nil {
				ended <- err
				return words{}, err
			}
		}
	})
	full := errors.New("the disk is full")
	if _, err := loud.Do(t.Context(), newTestClient(server.URL), words{}, executor.Streams{Stdout: writerFunc(func([]byte) (int, error) { return 0, full })}); !errors.Is(err, full) {
		t.Errorf("with output that cannot be written: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the server writes on")
	}
}

func TestASessionSaysWhyTheServerEndsIt(t *testing.T) {
	for want, base := range map[string]func(context.Context) (context.Context, func()){
		"the server stops": func(ctx context.Context) (context.Context, func()) {
			ctx, stop := context.WithCancel(ctx)
			return ctx, stop
		},
		"its time is over": func(ctx context.Context) (context.Context, func()) {
			ctx, end := context.WithDeadlineCause(ctx, time.Now(), errors.New("its time is over"))
			context.AfterFunc(ctx, end)
			return ctx, func() {}
		},
	} {
		t.Run(want, func(t *testing.T) {
			began := make(chan struct{})
			e := &Session[*echo, words, words]{Info: info("talk", Never), Serve: func(ctx context.Context, _ *echo, _ words, _ executor.Streams) (words, error) {
				close(began)
				<-ctx.Done()
				return words{}, ctx.Err()
			}}
			mux := http.NewServeMux()
			Register(newServer(), mux, new(echo), []Endpoint[*echo]{e})
			ctx, stop := base(t.Context())
			server := httptest.NewUnstartedServer(mux)
			server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
			server.Start()
			defer server.Close()
			go func() {
				<-began
				stop()
			}()
			if _, err := e.Do(t.Context(), newTestClient(server.URL), words{}, executor.Streams{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

func TestEitherSideEndsASessionInWhichItHearsNothing(t *testing.T) {
	s := newServer()
	s.Heartbeat = 20 * time.Millisecond
	ended := make(chan error, 1)
	_, server := talkWith(t, s, func(ctx context.Context, _ words, _ executor.Streams) (words, error) {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return words{}, ctx.Err()
	})
	upgraded(t, server) // says nothing
	if err := <-ended; !errors.Is(err, errSilent) {
		t.Errorf("the server ended it because of %v", err)
	}

	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: 20ms\r\n\r\n", sessionProtocol, HeartbeatHeader)
		_, _ = io.Copy(io.Discard, conn) // until the client ends it
		conn.Close()
	}))
	defer silent.Close()
	e := &Session[*echo, words, words]{Info: info("talk", Never)}
	if _, err := e.Do(t.Context(), newTestClient(silent.URL), words{}, executor.Streams{}); !errors.Is(err, ErrNoAnswer) || !errors.Is(err, errSilent) {
		t.Errorf("the client ended it with %v", err)
	}
}

func TestFramesThatMakeNoSenseEndASession(t *testing.T) {
	for _, tt := range []struct {
		name, says string
		sent       []byte
	}{
		{"too long", "frame 1 has 1048577 bytes; want at most 1048576", binary.BigEndian.AppendUint32([]byte{frameStdin}, maxFrame+1)},
		{"more than a window", "frame 2 of kind 0: it has more of a stream", bytes.Repeat(frame(frameStdin, strings.Repeat("x", windowBytes)), 2)},
		{"after the end", "frame 2 of kind 0: it has more of a stream", append(frame(frameEnd, ""), frame(frameStdin, "x")...)},
		{"of the other side", "frame 1 of kind 1: this side takes no such frames", frame(frameStdout, "x")},
		{"of no kind", "frame 1 of kind 99: this side takes no such frames", frame(99, "")},
		{"about no stream", "frame 1 of kind 4: it is about no stream", frame(frameTaken, "\x63\x00\x00\x00\x01")},
		{"taken, not sent", "frame 1 of kind 4: it says that more of a stream was taken", frame(frameTaken, "\x01\x00\x00\x00\x01")},
		{"too short", "frame 1 of kind 4: it is about no stream", frame(frameTaken, "\x01")},
		{"no control", "frame 1 of kind 5: what: ", frame(frameControl, `{"what": 1}`)},
		{"too much control", "frame 1 of kind 5: it has 4098 bytes; want at most 4096", frame(frameControl, "{"+strings.Repeat(" ", maxControl)+"}")},
		{"and more comes", "frame 1 of kind 99", append(frame(99, ""), bytes.Repeat(frame(frameAlive, ""), 1000)...)},
	} {
		ended := make(chan error, 1)
		_, server := talkWith(t, newServer(), func(ctx context.Context, _ words, _ executor.Streams) (words, error) {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return words{}, context.Cause(ctx)
		})
		conn, answer := upgraded(t, server)
		if _, err := conn.Write(tt.sent); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, executor.ErrInvalid) || errors.Is(err, errClientGone) {
			t.Errorf("%s: %v", tt.name, err)
		}
		// The client learns that it is to blame, and for which frame.
		var last result
		for last.Problem == nil {
			var header [5]byte
			_, err := io.ReadFull(answer, header[:])
			content := make([]byte, binary.BigEndian.Uint32(header[1:]))
			if _, late := io.ReadFull(answer, content); errors.Join(err, late) != nil {
				t.Fatalf("%s: %v, %v", tt.name, err, late)
			}
			if header[0] == frameResult {
				if err := json.Unmarshal(content, &last); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !strings.HasPrefix(last.Problem.Detail, "invalid input: "+tt.says) {
			t.Errorf("%s: the answer is %q, want %q", tt.name, last.Problem.Detail, tt.says)
		}
		conn.Close()
	}
}

func TestFramesAreTakenAtAPace(t *testing.T) {
	for name, sent := range map[string]struct {
		one   []byte
		often int
	}{
		"without content": {frame(frameAlive, ""), 10_000},
		"of no stream":    {frame(frameTaken, "\x01\x00\x00\x00\x00"), 10_000},
		"long":            {frame(frameAlive, strings.Repeat("x", maxFrame)), 10_000 / (maxFrame / pieceFrame)},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.Bubble(t, func(t *testing.T) {
				here, there := net.Pipe()
				p := &peer{conn: there, in: map[byte]*inflow{}, out: map[byte]*outflow{}}
				p.outflow(frameStdout)
				over := make(chan error, 1)
				go func() { over <- p.receive(time.Hour) }()
				began := time.Now()
				for range sent.often {
					if _, err := here.Write(sent.one); err != nil {
						t.Fatal(err)
					}
				}
				here.Close()
				if err := <-over; !errors.Is(err, io.EOF) {
					t.Error(err)
				}
				// 10,000, of which 2,000 are the burst.
				if took := time.Since(began); took < 3900*time.Millisecond || took > 4200*time.Millisecond {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func TestASessionIsRefusedBeforeItBegins(t *testing.T) {
	s := newServer()
	s.Authorize = func(*http.Request, *Info) (Caller, error) {
		return Caller{Domains: func(domain string) error {
			if domain == "ours" {
				return nil
			}
			return errSpoilt
		}}, nil
	}
	e, server := talkWith(t, s, func(context.Context, words, executor.Streams) (words, error) { return words{}, nil })
	e.Domain = func(_ context.Context, _ *echo, in words) (string, error) { return in.Text, nil }
	if _, err := e.Do(t.Context(), newTestClient(server.URL), words{Text: "ours"}, executor.Streams{}); err != nil {
		t.Error(err)
	}
	if _, err := e.Do(t.Context(), newTestClient(server.URL), words{Text: "theirs"}, executor.Streams{}); !errors.Is(err, errSpoilt) {
		t.Errorf("of another domain: %v", err)
	}
	answer, err := http.Post(server.URL+"/v1/talk", "application/json", strings.NewReader(`{"text": "ours"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), sessionProtocol) {
		t.Errorf("without an upgrade: %s, %s", answer.Status, text)
	}
	server.Close()
	if _, err := e.Do(t.Context(), newTestClient(server.URL), words{}, executor.Streams{}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("of a server that is gone: %v", err)
	}
	if _, err := e.Do(t.Context(), newTestClient(), words{}, executor.Streams{}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("without an address: %v, want ErrUnreachable", err)
	}
}

func TestARefusedSessionIsToldWithItsArguments(t *testing.T) {
	s := newServer()
	caller, role := Caller{Name: "mallory"}, errSpoilt
	s.Authorize = func(*http.Request, *Info) (Caller, error) { return caller, role }
	e, server := talkWith(t, s, func(context.Context, words, executor.Streams) (words, error) {
		t.Error("it has begun")
		return words{}, nil
	})
	var told []string
	e.Refused = func(ctx context.Context, _ *echo, in words, why error) {
		told = append(told, fmt.Sprintf("%s %.10s: %v", storage.Caller(ctx), in.Text, why))
	}
	try := func(text, want string) {
		t.Helper()
		told = nil
		if _, err := e.Do(t.Context(), newTestClient(server.URL), words{Text: text}, executor.Streams{}); !errors.Is(err, errSpoilt) {
			t.Errorf("%.10s: %v", text, err)
		}
		if got := strings.Join(told, ", "); got != want {
			t.Errorf("%.10s: it is told %q, want %q", text, got, want)
		}
	}
	try("hello", fmt.Sprintf("mallory hello: %v", role))
	try(strings.Repeat("x", refusedBytes), fmt.Sprintf("mallory : %v", role)) // too much to be read
	caller.Name = ""
	try("hello", "") // of nobody
	caller, role = Caller{Name: "mallory", Domains: func(string) error { return errSpoilt }}, nil
	e.Domain = func(_ context.Context, _ *echo, in words) (string, error) { return in.Text, nil }
	try("theirs", fmt.Sprintf("mallory theirs: %v", errSpoilt))
	s.MaxBodyBytes = 100
	for what, body := range map[string]string{
		`mallory : invalid input: byte 2: want JSON`:      `{x`,
		`mallory : request body is larger than 100 bytes`: strings.Repeat("x", 101),
	} {
		told = nil
		answer, err := http.Post(server.URL+"/v1/talk", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got := strings.Join(told, ", "); !strings.HasPrefix(got, what) {
			t.Errorf("of %.10q it is told %q, want %q", body, got, what)
		}
	}
}
